"""Seed words that a person would write down: five for each class, written from the names of the classes alone.

No data was looked at: no documents, no word counts and no results. The words are what the name of a class means to
somebody who knows the subject. Some may be rare or missing in a corpus; they stay as they are.
"""

NEWSGROUPS = {
    "alt.atheism": ["atheism", "atheist", "belief", "god", "evidence"],
    "comp.graphics": ["graphics", "image", "rendering", "polygon", "color"],
    "comp.os.ms-windows.misc": ["windows", "microsoft", "dos", "desktop", "driver"],
    "comp.sys.ibm.pc.hardware": ["motherboard", "bios", "ide", "controller", "isa"],
    "comp.sys.mac.hardware": ["mac", "apple", "macintosh", "powerbook", "quadra"],
    "comp.windows.x": ["xterm", "motif", "widget", "server", "unix"],
    "misc.forsale": ["sale", "offer", "shipping", "price", "sell"],
    "rec.autos": ["car", "engine", "dealer", "ford", "toyota"],
    "rec.motorcycles": ["motorcycle", "bike", "helmet", "ride", "harley"],
    "rec.sport.baseball": ["baseball", "pitcher", "inning", "batting", "homer"],
    "rec.sport.hockey": ["hockey", "puck", "goalie", "nhl", "rink"],
    "sci.crypt": ["encryption", "cipher", "key", "cryptography", "nsa"],
    "sci.electronics": ["circuit", "voltage", "resistor", "amplifier", "transistor"],
    "sci.med": ["doctor", "patient", "disease", "treatment", "symptoms"],
    "sci.space": ["space", "orbit", "nasa", "shuttle", "moon"],
    "soc.religion.christian": ["church", "jesus", "christian", "bible", "faith"],
    "talk.politics.guns": ["gun", "firearms", "weapon", "rifle", "amendment"],
    "talk.politics.mideast": ["israel", "arab", "palestinian", "jews", "turkish"],
    "talk.politics.misc": ["government", "president", "tax", "congress", "policy"],
    "talk.religion.misc": ["religion", "cult", "prophet", "spiritual", "scripture"],
}

# The grade of a film in four classes, from 0, the worst, to 3, the best.
RATINGS = {
    "0": ["worst", "awful", "terrible", "stupid", "waste"],
    "1": ["disappointing", "boring", "dull", "fails", "predictable"],
    "2": ["entertaining", "enjoyable", "solid", "decent", "fun"],
    "3": ["masterpiece", "brilliant", "superb", "powerful", "best"],
}

REUTERS = {
    "earn": ["earnings", "profit", "dividend", "quarter", "net"],
    "acq": ["acquisition", "merger", "takeover", "stake", "bid"],
    "money-fx": ["currency", "dollar", "yen", "exchange", "intervention"],
    "grain": ["grain", "harvest", "crop", "cereals", "barley"],
    "crude": ["oil", "crude", "barrel", "opec", "petroleum"],
    "trade": ["trade", "tariff", "exports", "imports", "deficit"],
    "interest": ["interest", "rate", "lending", "prime", "discount"],
    "ship": ["ship", "vessel", "port", "cargo", "tanker"],
    "wheat": ["wheat", "bushel", "flour", "winter", "durum"],
    "corn": ["corn", "maize", "feed", "acreage", "ethanol"],
}
