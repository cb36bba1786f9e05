"""The publications that a fit rests on: as a citation, as a line of a list of references, and as BibTeX."""

from importlib.metadata import version
from typing import NamedTuple

SOFTWARE = "supertopic"
BIBTEX = str.maketrans({"ó": r"{\'o}"})  # letters that old versions of BibTeX do not know


class Reference(NamedTuple):
    """A publication."""

    kind: str  # the type of the BibTeX entry
    authors: tuple[str, ...]  # "Family, Given"; without a comma a group
    title: str
    year: int
    fields: dict[str, str]  # further ones, by their names in BibTeX

    @property
    def cited(self) -> str:
        """As in a text: "Zhu, Zheng and Zhang 2013"."""
        families = [author.partition(",")[0] for author in self.authors]
        return f"{listed(families)} {self.year}"

    @property
    def text(self) -> str:
        """As in a list of references."""
        names = []
        for author in self.authors:
            family, comma, given = author.partition(", ")
            names.append(f"{family}, {' '.join(part[0] + '.' for part in given.split())}" if comma else family)
        return f"{listed(names)} ({self.year}). {self.title}. {self._place()}"

    def bibtex(self, key: str) -> str:
        """As an entry of BibTeX."""
        authors = " and ".join(author if "," in author else f"{{{author}}}" for author in self.authors)
        fields = {"author": authors, "title": f"{{{self.title}}}", "year": str(self.year)} | self.fields
        lines = [f"  {name} = {{{value.translate(BIBTEX)}}}" for name, value in fields.items()]
        return f"@{self.kind}{{{key},\n" + ",\n".join(lines) + "\n}"

    def _place(self) -> str:
        """Where it was published."""
        own = self.fields
        if "version" in own:
            return f"Version {own['version']}."
        place = own.get("journal") or own.get("booktitle", "")
        if "volume" in own:
            place += f" {own['volume']}" + (f"({own['number']})" if "number" in own else "")
        place += f", {own['pages'].replace('--', '-')}" if "pages" in own else ""
        return f"{place}." + (f" https://doi.org/{own['doi']}" if "doi" in own else "")


def listed(names: list[str]) -> str:
    """A, B and C."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


REFERENCES = {
    "zhu2013": Reference(
        "inproceedings", ("Zhu, Jun", "Zheng, Xun", "Zhang, Bo"),
        "Improved Bayesian Logistic Supervised Topic Models with Data Augmentation", 2013,
        {"booktitle": "Proceedings of the 51st Annual Meeting of the Association for Computational Linguistics",
         "pages": "187--195"},
    ),
    "polson2013": Reference(
        "article", ("Polson, Nicholas G.", "Scott, James G.", "Windle, Jesse"),
        "Bayesian Inference for Logistic Models Using Pólya-Gamma Latent Variables", 2013,
        {"journal": "Journal of the American Statistical Association", "volume": "108", "number": "504",
         "pages": "1339--1349", "doi": "10.1080/01621459.2013.829001"},
    ),
    "mccullagh1980": Reference(
        "article", ("McCullagh, Peter",), "Regression Models for Ordinal Data", 1980,
        {"journal": "Journal of the Royal Statistical Society, Series B", "volume": "42", "number": "2",
         "pages": "109--142"},
    ),
    "dawid1979": Reference(
        "article", ("Dawid, A. P.", "Skene, A. M."),
        "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm", 1979,
        {"journal": "Journal of the Royal Statistical Society, Series C", "volume": "28", "number": "1",
         "pages": "20--28"},
    ),
    "rodrigues2017": Reference(
        "article", ("Rodrigues, Filipe", "Lourenço, Mariana", "Ribeiro, Bernardete", "Pereira, Francisco C."),
        "Learning Supervised Topic Models for Classification and Regression from Crowds", 2017,
        {"journal": "IEEE Transactions on Pattern Analysis and Machine Intelligence", "volume": "39", "number": "12",
         "pages": "2409--2422", "doi": "10.1109/TPAMI.2017.2648786"},
    ),
    "cox1972": Reference(
        "article", ("Cox, David R.",), "Regression Models and Life-Tables", 1972,
        {"journal": "Journal of the Royal Statistical Society, Series B", "volume": "34", "number": "2",
         "pages": "187--220"},
    ),
    "singer1993": Reference(
        "article", ("Singer, Judith D.", "Willett, John B."),
        "It's About Time: Using Discrete-Time Survival Analysis to Study Duration and the Timing of Events", 1993,
        {"journal": "Journal of Educational Statistics", "volume": "18", "number": "2", "pages": "155--195"},
    ),
    "zhu2014": Reference(
        "article", ("Zhu, Jun", "Chen, Ning", "Perkins, Hugh", "Zhang, Bo"),
        "Gibbs Max-margin Topic Models with Data Augmentation", 2014,
        {"journal": "Journal of Machine Learning Research", "volume": "15", "pages": "1073--1110"},
    ),
    "blei2007": Reference(
        "inproceedings", ("Blei, David M.", "McAuliffe, Jon D."), "Supervised Topic Models", 2007,
        {"booktitle": "Advances in Neural Information Processing Systems", "volume": "20"},
    ),
    "blei2003": Reference(
        "article", ("Blei, David M.", "Ng, Andrew Y.", "Jordan, Michael I."), "Latent Dirichlet Allocation", 2003,
        {"journal": "Journal of Machine Learning Research", "volume": "3", "pages": "993--1022"},
    ),
    "griffiths2004": Reference(
        "article", ("Griffiths, Thomas L.", "Steyvers, Mark"), "Finding scientific topics", 2004,
        {"journal": "Proceedings of the National Academy of Sciences", "volume": "101", "number": "suppl. 1",
         "pages": "5228--5235", "doi": "10.1073/pnas.0307752101"},
    ),
    "bischof2012": Reference(
        "inproceedings", ("Bischof, Jonathan M.", "Airoldi, Edoardo M."),
        "Summarizing topical content with word frequency and exclusivity", 2012,
        {"booktitle": "Proceedings of the 29th International Conference on Machine Learning"},
    ),
    "egami2022": Reference(
        "article",
        ("Egami, Naoki", "Fong, Christian J.", "Grimmer, Justin", "Roberts, Margaret E.", "Stewart, Brandon M."),
        "How to make causal inferences using texts", 2022,
        {"journal": "Science Advances", "volume": "8", "number": "42", "pages": "eabg2652",
         "doi": "10.1126/sciadv.abg2652"},
    ),
    SOFTWARE: Reference(
        "software", ("The supertopic developers",), "supertopic: supervised topic models for Python", 2026,
        {"version": version("supertopic"), "license": "BSD-3-Clause"},
    ),
}  # fmt: skip


def cite(*keys: str) -> str:
    """Citations in parentheses."""
    return f"({'; '.join(REFERENCES[key].cited for key in keys)})"
