"""Amounts in words for invoices: whole francs below 10^15."""

from common.language import Language

LARGEST = 10**15 - 1

_FR = (
    *("zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze", "treize"),
    *("quatorze", "quinze", "seize"),
)
_FR_TENS = {20: "vingt", 30: "trente", 40: "quarante", 50: "cinquante", 60: "soixante", 80: "quatre-vingt"}
_FR_SCALES = ((10**12, "billion"), (10**9, "milliard"), (10**6, "million"))

_EN = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_EN_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_EN_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"))


def in_letters(amount: int, language: Language) -> str:
    """`1000000` is `un million de francs CFA`, `one million CFA francs`."""
    if language == "en":
        return f"{english(amount)} CFA franc{'' if amount == 1 else 's'}"
    of = "de " if amount and amount % 10**6 == 0 else ""
    return f"{french(amount)} {of}franc{'s' if amount > 1 else ''} CFA"


def sum_of(amount: int, language: Language) -> str:
    """The words after "the sum": `d'un million de francs CFA`, `de deux francs CFA`."""
    words = in_letters(amount, language)
    if language == "en":
        return f"of {words}"
    return f"d'{words}" if words.startswith(("un ", "un-")) else f"de {words}"


def french(number: int) -> str:
    """Traditional spelling: hyphens below a hundred, `et un`, an s for whole hundreds and for quatre-vingts."""
    _check(number)
    if number == 0:
        return _FR[0]
    parts = []
    for scale, name in _FR_SCALES:
        count, number = divmod(number, scale)
        if count:
            parts.append(f"{_french_below_1000(count)} {name}{'s' if count > 1 else ''}")
    thousands, number = divmod(number, 1000)
    if thousands:
        parts.append("mille" if thousands == 1 else f"{_french_below_1000(thousands, before_mille=True)} mille")
    if number:
        parts.append(_french_below_1000(number))
    return " ".join(parts)


def _french_below_1000(number: int, *, before_mille: bool = False) -> str:
    hundreds, rest = divmod(number, 100)
    words = []
    if hundreds:
        plural = "s" if hundreds > 1 and not rest and not before_mille else ""
        words.append("cent" + plural if hundreds == 1 else f"{_FR[hundreds]} cent{plural}")
    if rest:
        words.append(_french_below_100(rest, before_mille=before_mille))
    return " ".join(words)


def _french_below_100(number: int, *, before_mille: bool) -> str:
    if number < len(_FR):
        return _FR[number]
    if number < 20:  # noqa: PLR2004  dix-sept to dix-neuf
        return f"dix-{_FR[number - 10]}"
    ten = max(value for value in _FR_TENS if value <= number)
    rest = number - ten
    name = _FR_TENS[ten]
    if not rest:
        return name + ("s" if ten == 80 and not before_mille else "")  # noqa: PLR2004
    if rest in (1, 11) and ten != 80:  # noqa: PLR2004
        return f"{name} et {_FR[rest]}"
    return f"{name}-{_french_below_100(rest, before_mille=before_mille)}"


def english(number: int) -> str:
    _check(number)
    if number < len(_EN):
        return _EN[number]
    parts = []
    for scale, name in _EN_SCALES:
        count, number = divmod(number, scale)
        if count:
            parts.append(f"{_english_below_1000(count)} {name}")
    if number:
        parts.append(_english_below_1000(number))
    return " ".join(parts)


def _english_below_1000(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    words = [f"{_EN[hundreds]} hundred"] if hundreds else []
    if rest:
        words.append(_english_below_100(rest))
    return " ".join(words)


def _english_below_100(number: int) -> str:
    if number < len(_EN):
        return _EN[number]
    tens, rest = divmod(number, 10)
    return _EN_TENS[tens] + (f"-{_EN[rest]}" if rest else "")


def _check(number: int) -> None:
    if not 0 <= number <= LARGEST:
        raise ValueError(f"{number} is not an amount that is written in letters (0 to {LARGEST})")
