"""
Does the model find what is true? A simulation
==============================================

The other tutorials use real texts, for which nobody knows the true effects. Here the texts are simulated: support
tickets, some of which are urgent, and we choose the rule that makes them urgent. So you can compare what the model
finds with the truth.
"""

# %%
# Tickets with a known truth
# --------------------------
# Every ticket mixes a few of six subjects. A subject adds its weight times its share of the ticket to the log-odds of
# "urgent". One word, *production*, adds 2 by itself, wherever it stands.

import numpy as np

SUBJECTS = {  # subject: weight, words
    "outage": (4.0, "server down outage unreachable timeout crash restart users affected monitoring"),
    "data loss": (3.0, "lost backup deleted restore files missing corrupted recover disk folder"),
    "login": (0.0, "password login account locked reset token mail verify access browser"),
    "printer": (-1.0, "printer paper toner jam tray scanner cartridge duplex driver queue"),
    "invoice": (-2.0, "invoice payment vat order address billing refund contract customer number"),
    "wish": (-4.0, "feature would like request idea export button colour option improve theme"),
}
ANYWHERE = "hello please team today office laptop windows version help thanks since again working problem".split()

rng = np.random.default_rng(0)
weights = np.array([weight for weight, _ in SUBJECTS.values()])
words_of = [words.split() for _, words in SUBJECTS.values()]
shares = rng.dirichlet(np.full(len(SUBJECTS), 0.15), 1500)  # of the subjects in each ticket
tickets = []
for share in shares:
    subject = rng.choice(len(SUBJECTS), 25, p=share)
    text = [rng.choice(words_of[k] if rng.random() < 0.7 else ANYWHERE) for k in subject]
    tickets.append(" ".join(text + ["production"] * (rng.random() < 0.15)))
has_word = np.array(["production" in ticket for ticket in tickets])
log_odds = -1.0 + shares @ weights + 2.0 * has_word
urgent = np.where(rng.random(len(tickets)) < 1 / (1 + np.exp(-log_odds)), "urgent", "normal")
print(tickets[0], "->", urgent[0])
print(f"{np.mean(urgent == 'urgent'):.0%} of {len(tickets)} tickets are urgent")

# %%
# Fit
# ---
# The model takes the word counts and the class of each ticket. A third of the tickets are kept for testing. The
# reported weights are cross-fitted: each chain learns its topics without the classes of a quarter of the training
# tickets, and one regression then uses all of them.

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

from supertopic import CoefficientDisplay, EffectDisplay, ExplanationDisplay, SLDAClassifier

train, test, y, y_test = train_test_split(tickets, urgent, test_size=1 / 3, random_state=0)
vectorizer = CountVectorizer()
X, X_test = vectorizer.fit_transform(train), vectorizer.transform(test)
words = vectorizer.get_feature_names_out()
model = SLDAClassifier(n_topics=7, random_state=0).fit(X, y)
print(f"accuracy on the test tickets: {model.score(X_test, y_test):.3f}")
print(f"always the larger class:      {max(np.mean(y_test == name) for name in model.classes_):.3f}")

# %%
# The topics and their effects
# ----------------------------
# Each topic has a weight. It is the log-odds of "urgent" for a ticket that consists of this topic only, minus the
# log-odds of the base rate. The line is a 90 % interval.

display = CoefficientDisplay.from_estimator(model, words, n_words=4)
_ = display.ax_.set_xlabel("log-odds of urgent,\nagainst the base rate")

# %%
# Effects in points of the probability are easier to read: the change with ten percentage points more of a topic.

_ = EffectDisplay.from_estimator(model, words, n_words=4)

# %%
# Against the truth
# -----------------
# Each topic is compared with the subject that it shares most words with. The truth is put on the same scale: the
# log-odds of a ticket that consists of one subject only, minus ``intercept_``, the log-odds of the base rate. There is
# one topic more than there are subjects, since you would not know their number. So two topics may be about one subject.

import pandas as pd

place = {word: i for i, word in enumerate(words)}
use = np.array([[row[[place[word] for word in own]].sum() for own in words_of] for row in model.topic_word_])
subject = use.argmax(axis=1)
lower, upper = model.coef_interval(0.9)
table = pd.DataFrame(
    {
        "words": [" ".join(top) for top in model.top_words(words, 4)],
        "subject": np.array(list(SUBJECTS))[subject],
        "truth": -1.0 + weights[subject] + 2.0 * has_word.mean() - model.intercept_[0],
        "found": model.coef_[0],
        "lower": lower[0],
        "upper": upper[0],
    }
)
table.sort_values("truth").round(1)

# %%
# A word that decides by itself
# -----------------------------
# *production* belongs to no subject, so no topic can be about it. It has a direct weight. That weight is multiplied by
# the tf-idf of the word in a ticket, so it is not a log-odds by itself.

for row in model.missed_words(words, 3):
    print("towards", row["column"], row["towards"], "away", row["away"])
strength = model.word_coef_[0]
print(
    f"the weight of production is {strength[place['production']]:.1f}, the next largest is {np.sort(strength)[-2]:.1f}"
)

# %%
# Why one ticket is predicted to be urgent
# ----------------------------------------
# The explanation shows what each word adds, through its topic and directly. The parts add up to the log-odds.

surest = int(model.predict_proba(X_test)[:, 1].argmax())
_ = ExplanationDisplay.from_estimator(model, X_test[surest : surest + 1], words, n_words=8)

# %%
# ``explain`` has the same as numbers.

model.explain(X_test[surest : surest + 1], words)

# %%
# What next
# ---------
# Simulate texts like your own before you collect them: with how many documents are the intervals short enough? Larger
# simulations of the same kind are in :doc:`the page on accuracy </accuracy>`.
