import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.paper.letters import LARGEST, english, french, in_letters

CHARACTERS = {
    0: "zéro",
    1: "un",
    16: "seize",
    17: "dix-sept",
    21: "vingt et un",
    22: "vingt-deux",
    70: "soixante-dix",
    71: "soixante et onze",
    77: "soixante-dix-sept",
    80: "quatre-vingts",
    81: "quatre-vingt-un",
    91: "quatre-vingt-onze",
    99: "quatre-vingt-dix-neuf",
    100: "cent",
    101: "cent un",
    180: "cent quatre-vingts",
    200: "deux cents",
    201: "deux cent un",
    1_000: "mille",
    1_080: "mille quatre-vingts",
    1_999: "mille neuf cent quatre-vingt-dix-neuf",
    80_000: "quatre-vingt mille",
    200_000: "deux cent mille",
    280_000: "deux cent quatre-vingt mille",
    1_000_000: "un million",
    80_000_000: "quatre-vingts millions",
    200_000_000: "deux cents millions",
    1_001_000: "un million mille",
    2_000_000_000: "deux milliards",
    10**12: "un billion",
}


def test_spelling():
    """Hyphens, `et`, and the s of vingt and cent stand where the grammar wants them. The unit agrees with the amount, and a round million takes `de`. No amount is written wrongly because
    it is too large."""
    assert {number: french(number) for number in CHARACTERS} == CHARACTERS
    francs = {1: "un franc CFA", 15_000: "quinze mille francs CFA", 2_000_000: "deux millions de francs CFA"}
    assert {amount: in_letters(amount, "fr") for amount in francs} == francs
    assert in_letters(2_000_001, "fr") == "deux millions un francs CFA"
    assert in_letters(93_021, "en") == "ninety-three thousand twenty-one CFA francs"
    assert in_letters(1, "en") == "one CFA franc"
    for number in (-1, LARGEST + 1):
        with pytest.raises(ValueError, match="written in letters"):
            french(number)


def words_of(small, tens):
    values = {word: value for value, word in enumerate(small.split())}
    return values | {word: 10 * value for value, word in enumerate(tens.split(), 2)}


FRENCH = words_of(
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize",
    "vingt trente quarante cinquante soixante",
)
ENGLISH = words_of(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen",
    "twenty thirty forty fifty sixty seventy eighty ninety",
)
SCALES = {"million": 10**6, "milliard": 10**9, "billion": 10**12}
ENGLISH_SCALES = {"thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}


def heard_in_french(text):
    """By ear, as one adds up what is said: written apart from the code that spells."""
    total = part = 0
    words = text.replace("quatre-vingt", "octante").replace("-", " ").split()
    for word in words:
        plain = word if word in FRENCH else word.removesuffix("s")
        if plain == "octante":
            part += 80
        elif plain == "cent":
            part = part - part % 100 + 100 * max(part % 100, 1)
        elif plain == "mille":
            total, part = total + 1000 * max(part, 1), 0
        elif plain in SCALES:
            total, part = total + SCALES[plain] * part, 0
        elif plain != "et":
            part += FRENCH[plain]
    return total + part


def heard_in_english(text):
    total = part = 0
    for word in text.replace("-", " ").split():
        if word == "hundred":
            part *= 100
        elif word in ENGLISH_SCALES:
            total, part = total + ENGLISH_SCALES[word] * part, 0
        else:
            part += ENGLISH[word]
    return total + part


@given(number=st.one_of(st.integers(0, 2000), st.integers(0, LARGEST)))
def test_what_is_written_is_the_amount(number):
    """Adding up the words gives the number again, in both languages."""
    assert heard_in_french(french(number)) == number
    assert heard_in_english(english(number)) == number
