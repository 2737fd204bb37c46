"""English word lists: closed classes, irregular forms, number words, words too general to be unsupported."""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """Return the words of a string."""
    return frozenset(words.split())


def _numbered(words: str, start: int, step: int = 1) -> dict[str, int]:
    return {word: start + step * i for i, word in enumerate(words.split())}


def _inflections(table: str) -> dict[str, str]:
    """Map each form to its base; the table is "base form form; base form"."""
    rows = (row.split() for row in table.split(";"))
    return {form: base for base, *forms in rows for form in forms}


ARTICLES = word_set("a an the")
CONJUNCTIONS = word_set("and or but nor")
PREPOSITIONS = word_set("""
    about above across after against along amid among amongst around at before behind below beneath beside besides
    between beyond by despite down during except for from in inside into like near of off on onto out outside over past
    per through throughout to toward towards under underneath unlike up upon via with within without
    """)
AUXILIARIES = word_set("""
    am is are was were be been being has have had having do does did doing done will would shall should can could may
    might must cannot ought need
    don't doesn't didn't won't wouldn't can't couldn't shouldn't isn't aren't wasn't weren't hasn't haven't hadn't
    """)
SUBJECTS = word_set("""
    i he she it we they who which that there what
    i'm you're he's she's it's we're they're i've you've we've they've i'll you'll he'll she'll it'll we'll they'll
    i'd you'd he'd she'd we'd they'd that's there's what's who's let's
    """)
FUNCTION_WORDS = (
    ARTICLES
    | CONJUNCTIONS
    | PREPOSITIONS
    | AUXILIARIES
    | SUBJECTS
    | word_set("""
        this these those such same other another each every either neither both all any some no none few many much more
        most less least several enough own
        me my mine myself you your yours yourself him his himself her hers herself its itself us our ours ourselves them
        their theirs themselves one's whom whose whatever someone anyone everyone nobody something anything everything
        nothing here where when why how
        yet so if because although though while whereas unless until till since whether than as once
        not only just also too very even still again ever never always often sometimes already soon then now later ago
        however therefore thus hence moreover meanwhile instead otherwise rather quite almost nearly well away back
        together today perhaps maybe
        """)
)

# Said of almost anything, so hardly ever unsupported. Words that announce a summary ("discusses", "text") are not here.
GENERAL_WORDS = word_set("""
    add aim allow appear ask available base become begin bring call carry case cause change come common continue
    current day different early end every expect far find first follow former full further get give go good great
    group grow happen help high hold important include increase involve keep kind know large last late lead leave less
    level like local long look lot low main major make man mean member month move name new next number offer old one
    open order part people person place plan play point possible present produce provide put reach reason receive
    recent reduce remain report result return run say second see seek serve set several show side similar single site
    small spend stand start state stay stop system take team tell thing time total turn type use various want way week
    woman word work year young
    """)

IRREGULAR_VERBS = _inflections("""
    bear bore borne; beat beaten; become became; begin began begun; bind bound; bite bit bitten; blow blew blown;
    break broke broken; bring brought; build built; burn burnt; buy bought; catch caught; choose chose chosen;
    come came; deal dealt; die died; dig dug; draw drew drawn; drink drank drunk; drive drove driven; eat ate eaten;
    fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled; fly flew flown;
    forget forgot forgotten; freeze froze frozen; get got gotten; give gave given; go went gone; grow grew grown;
    hang hung; hear heard; hide hid hidden; hold held; keep kept; know knew known; lay laid; lead led; learn learnt;
    leave left; lend lent; lie lain; light lit; lose lost; make made; mean meant; meet met; overtake overtook;
    pay paid; prove proven; ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen;
    seek sought; sell sold; send sent; shake shook shaken; shoot shot; show shown; sing sang sung; sink sank sunk;
    sit sat; sleep slept; speak spoke spoken; spend spent; stand stood; steal stole stolen; stick stuck; strike struck;
    swear swore sworn; sweep swept; swim swam swum; take took taken; teach taught; tear tore torn; tell told;
    think thought; throw threw thrown; understand understood; undertake undertook; use used; wake woke woken;
    wear wore worn; weave wove woven; win won; withdraw withdrew withdrawn; write wrote written
    """)
IRREGULAR_FORMS = IRREGULAR_VERBS | _inflections("""
    child children; choose choice choices; cut cutting; die dies dying death deaths dead; fly flight flights;
    foot feet; grow growth; life lives; lose loss losses; man men; person people; sell sale sales; sing song songs;
    speak speech; use using uses; win winner winners winning; woman women
    """)

ABBREVIATIONS = word_set("mr mrs ms dr prof st sr jr vs etc inc ltd co corp gen sen rep capt sgt approx dept est")

CALENDAR_WORDS = word_set("""
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    """)

DIGITS = r"\d+(?:[.,:]\d+)*"  # a number in digits, as a regular expression
UNITS = {
    **_numbered("one two three four five six seven eight nine", 1),
    **_numbered("first second third fourth fifth sixth seventh eighth ninth", 1),
}
TENS = _numbered("twenty thirty forty fifty sixty seventy eighty ninety", 20, step=10)
NUMBER_WORDS = {
    "zero": 0,
    "dozen": 12,
    **UNITS,
    **TENS,
    **_numbered("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen", 10),
    **_numbered("tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth", 10),
}
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
SCALES |= {"k": 1e3, "m": 1e6, "bn": 1e9}
