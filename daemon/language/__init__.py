"""Moved to `common.language`; this name goes when its last import has gone."""

from common.language import DOMAIN as DOMAIN
from common.language import FOLDER as FOLDER
from common.language import LANGUAGES as LANGUAGES
from common.language import Counted as Counted
from common.language import Language as Language
from common.language import Speaker as Speaker
from common.language import Text as Text
from common.language import ambient as ambient
from common.language import catalogue as catalogue
from common.language import preferred as preferred
from common.language import sentence as sentence
from common.language import tell as tell
from common.language import tr as tr
from common.language import translated as translated
