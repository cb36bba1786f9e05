"""Where the corpora are, and the two 20 Newsgroups tasks of the paper."""

import pytest

from benchmarks import corpora


def corpus(name):
    """The folder or file of a corpus; the test is skipped where it is absent."""
    if not (corpora.DATA / name).exists():
        pytest.skip(f"the corpus {name} is not in {corpora.DATA}; set SUPERTOPIC_DATA to the folder that has it")
    return corpora.DATA / name


@pytest.fixture(scope="session")
def newsgroups():
    corpus("20news-bydate-matlab")
    return corpora.newsgroups()


@pytest.fixture(scope="session")
def newsgroups_pair(newsgroups):
    return corpora.newsgroups_pair(newsgroups)
