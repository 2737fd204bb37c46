"""What a clause says is missing: "It forgot the price", "No mention of the price", "Where is the price?"."""

from __future__ import annotations

import re

from text2grad.schema import Range

_WHAT = (
    r"(?P<what>[^\s.,;:!?][^.;:!?,]*?(?:,\s(?:(?:and|or)\s)?(?:the|an?|any|some|its|his|her|their|how|when|why)\s[^.;:!?,]*?)*)"
)
_TAIL = (
    r"(?=\s+(?:at all|anywhere|entirely|completely|altogether|though|please|too|here|either|as well|somewhere|imo|tbh"
    r"|yet|anymore|again|so far|instead"
    r"|(?:in|from|of|to) (?:the|this|your|my|its) (?:\w+ )?(?:summary|answer|response|reply|text|letter|e-?mail|recipe"
    r"|code|function|program|draft|list|output|article|source|document|passage|story|report))\b"
    r"|\s*[.,;:!?()]|\s*$|\s+(?:because|since|but|which|as it|so that|or else|after reading)\b)"
)
_OBJECT = r"(?:\s+(?:us|me|them|people|readers?|the (?:reader|user|customer|client|guests?)s?))?"
_ABOUT = r"(?:\s+(?:(?:anything|something|a (?:word|line|sentence|note|bit)|more|a little)\s+)?(?:about|on|regarding))?"
_MENTION = (
    r"(?:mention|include|add|cover|address|discuss|specify|list|name|provide|contain|describe|go into|touch on|refer to"
    r"|talk about|speak about|note)"
)
_MENTIONED = r"(?:mentioned|included|added|covered|addressed|discussed|specified|listed|named|provided|stated|given|explained)"
_TELL = r"(?:say|state|tell|explain|give|show|clarify|define|make clear)"
_TOLD = r"(?:said|stated|told|explained|given|shown|clarified|defined|made clear)"
_INDIRECT = r"(?=(?:how|when|where|who|whom|whose|why|what|which|whether|if|that|anything|something)\b(?!\s+(?:is|was|it)?\s*(?:wrong|true)))"
_ADVERBS = r"(?:\s+(?:also|at least|really|probably|perhaps|just|even|actually|ever|explicitly|sadly|still|then|simply|maybe))*"
_NOT = r"(?:\w+n['’]t|\w+nt|not|never|cannot|nowhere|fails? to|failed to|neglects? to|neglected to|forg[eo]ts? to|forgotten to|omit(?:s|ted)? to|without)"
_OUGHT = r"(?:should(?:['’]ve)?|must|ought to|needs? to|could(?:['’]ve)?|might|might want to|may want to|has to|have to|can)"
_FINE = r"(?:nice|good|great|useful|helpful|welcome|appreciated|better|perfect|interesting|handy|lovely|wonderful|wise|cool|ideal|in order)"
_KNOW = (
    r"(?:know|see|hear|read|have|learn|find|find out|mention|add|include|get|understand|say|tell|explain|be told|state)"
)
_BE = r"(?:is|are|was|were|['’]s|has been|have been|seems? to be|gets?|got|went|goes|appears? to be)"
_BE_NOT = r"(?:(?:is|are|was|were|has been|have been)(?: \w+ly)? (?:not|never|nowhere)|(?:is|are|was|were)n['’]?t|has(?:n['’]?t| never) been|have(?:n['’]?t| never) been)"
_IT = r"(?:it|you|they|this|there|that|(?:the|your) \w+)"
_SIZE = r"(?:much|many|long|hot|often|big|large|old|far|fast|high|expensive)"

_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:{_NOT}){_ADVERBS}\s+{_MENTION}{_ABOUT}\s+{_WHAT}{_TAIL}",
        rf"\b(?:{_NOT}){_ADVERBS}\s+{_TELL}{_OBJECT}{_ABOUT}\s+{_INDIRECT}(?:(?:anything|something) about )?{_WHAT}{_TAIL}",
        rf"\b(?:{_NOT}){_ADVERBS}\s+{_TELL}{_OBJECT}\s+(?:anything|something|a word|a thing)\s+(?:about|on)\s+{_WHAT}{_TAIL}",
        rf"\b(?:fails?|failed|neglects?|neglected|forg[eo]ts?|forgotten)\s+to\s+(?:explain|state|give|tell){_OBJECT}\s+{_WHAT}{_TAIL}",
        rf"\b(?:never|doesn['’]?t|does not)\s+(?:mentions|includes|covers|discusses|specifies|lists|says|states|tells{_OBJECT})"
        rf"\s+{_WHAT}{_TAIL}",
        rf"\bnever\s+(?:(?:mentions|includes|covers|discusses|specifies|lists)|(?:says|states|explains|tells{_OBJECT})\s+{_INDIRECT})"
        rf"\s*{_WHAT}{_TAIL}",
        rf"\b(?:does not|doesn['’]?t|don['’]?t|never|nor|not) (?:have|check(?:s)? for|test(?:s)? for|guard(?:s)? against)\s+{_WHAT}{_TAIL}",
        rf"\b(?:forg[eo]t(?:s|ten|ting)?|omit(?:s|ted|ting)?|leav(?:es|ing) out|left out|leave out|skip(?:s|ped)?(?: over)?"
        rf"|overlook(?:s|ed)?|neglect(?:s|ed)?|gloss(?:es|ed)? over|ignor(?:es|ed))\s+(?!to\s)(?:about\s+)?{_WHAT}{_TAIL}",
        rf"\b(?:leaves?|left|leaving)\s+(?!out\b){_WHAT}\s+out\b",
        rf"\b(?:lacks?|lacked|(?:is|are) lacking|(?:it|this|summary|answer|code|function|program|letter|recipe|we|line|reply|response"
        rf"|text|email)\s?(?:['’]s|is|are|['’]re) missing|misses|i\s?(?:['’]m| am)? miss(?:ing|ed)?|^(?:still )?missing:?)\s+{_ADVERBS}"
        rf"(?:any mention of\s+)?{_WHAT}{_TAIL}",
        rf"\b(?:what(?: is|['’]s)?|thing|all)(?: i)?(?: that| that is| that['’]s|['’]s| is)? (?:missing|miss|missed|lacking|lacks?) (?:is|are|was|were|here is)?\s*:?\s*{_WHAT}{_TAIL}",
        rf"\bmissing(?: is)?:\s*{_WHAT}{_TAIL}",
        rf"\bmissing\s+(?:is|are)\s+{_WHAT}{_TAIL}",
        rf"\b(?:no|not an?|not one|not a single|without(?: any)?|lacks? any) (?:\w+ )?(?:mention|word|words|information|info|details?|reference|discussion"
        rf"|explanation|hint|trace|instructions?|handling|check|test)(?: is made| is given| was made)? (?:of|about|on|regarding|to|as to|for)\s+{_WHAT}{_TAIL}",
        rf"\bnothing(?: is said| was said| at all)? (?:about|on|regarding|as to)\s+(?!this|that|it\b){_WHAT}{_TAIL}",
        rf"\bsilent (?:on|about)\s+{_WHAT}{_TAIL}",
        rf"\b(?:there(?:['’]s| is| are| was| were)|it has|has|have|with|i see|see) no\s+{_WHAT}{_TAIL}",
        rf"^no\s+(?P<what>(?:[\w'’-]+\s?){{1,4}}?)\s*[.!]*$",
        rf"^{_WHAT}\s+{_BE}{_ADVERBS}(?: \w+ly)?\s+(?:missing|absent|omitted|left out|forgotten|skipped|ignored|overlooked|lacking|lost|unmentioned"
        rf"|nowhere(?: mentioned| to be (?:found|seen))?|no mention)\b",
        rf"^{_WHAT}\s+{_BE_NOT}{_ADVERBS}\s+(?:even )?(?:{_MENTIONED}|there|in there|present|anywhere|to be (?:found|seen))\b",
        rf"^(?!it\s){_WHAT}\s+(?:should|could|must|needs? to|ought to|has to|have to|might)(?: also| really| at least| perhaps)? (?:be|have been)"
        rf"\s+(?:mentioned|included|added|listed|covered|stated|there|in there)\b",
        rf"^(?:an? (?:word|sentence|note|line|paragraph|bit) (?:on|about)\s+)?{_WHAT}\s+would(?:n['’]t| not)?(?: also| really)?(?: be| have been|['’]ve been)?"
        rf"\s+(?:{_FINE}|help(?:ed)?|have helped|hurt|have been|not have hurt|go a long way)\b",
        rf"^(?:an? (?:word|sentence|note|line|paragraph) (?:on|about))\s+{_WHAT}\s+(?:is|would|could|should|might|wouldn['’]t)\b",
        rf"^(?:some |any )?(?:more|further|additional)(?: details?| information| info)? (?:on|about)\s+{_WHAT}(?:\s+(?:would|is|are|needed)\b|{_TAIL})",
        rf"^some (?:details?|information|info|words?) (?:on|about)\s+{_WHAT}\s+(?:would|is|are|needed)\b",
        rf"\b{_OUGHT}{_ADVERBS}(?: have)?{_ADVERBS}\s+(?:{_MENTION}|{_MENTIONED}){_OBJECT}{_ABOUT}\s+{_WHAT}{_TAIL}",
        rf"\b{_OUGHT}(?: have)?\s+(?:also|at least)\s+(?:have\s+)?(?:{_TELL}|{_TOLD}){_OBJECT}{_ABOUT}\s+{_WHAT}{_TAIL}",
        rf"\b{_OUGHT}{_ADVERBS}(?: have)?{_ADVERBS}\s+(?:{_TELL}|{_TOLD}){_OBJECT}\s+{_INDIRECT}(?:(?:anything|something|more) (?:about|on) )?{_WHAT}{_TAIL}",
        rf"\b{_OUGHT}(?: have)?\s+(?:{_TELL}|{_TOLD})\s+more\s+(?:about|on)\s+{_WHAT}{_TAIL}",
        rf"\b(?:there )?(?:should|must|could)(?:n['’]t there)? (?:also )?be (?:a check for |a test for )?(?=(?:an?|some|more)\s){_WHAT}{_TAIL}",
        rf"\bshould(?:n['’]t)? (?:it|you|there|this)(?: also)? (?:{_MENTION}|be|have)\s+{_WHAT}{_TAIL}",
        rf"\bshould have (?=(?:an?|the|some|more)\s){_WHAT}{_TAIL}",
        rf"\b(?:could|can) (?:also )?(?:use|do with)\s+{_WHAT}{_TAIL}",
        rf"\b(?:also )?needs?\s+(?:also\s+)?(?:(?:a (?:sentence|line|word|note|check) (?:about|on|for))\s+)?(?!to\b){_WHAT}{_TAIL}",
        rf"^(?:(?:please|pls|also|and|maybe|perhaps|just|do|then)[\s,]+)*(?:add|include|mention|insert)\s+(?:also\s+)?"
        rf"(?:(?:something|a (?:line|sentence|word|note|paragraph|bit|section|check)|more) (?:about|on|for)\s+)?{_WHAT}{_TAIL}",
        rf"^(?:(?:please|pls|also|and|maybe|perhaps|just|do|then)[\s,]+)*(?:say|tell|explain|state|specify|clarify){_OBJECT}\s+{_INDIRECT}{_WHAT}{_TAIL}",
        rf"\bwould(?: have)?(?: also)? (?:be|been|help)(?: even)?(?: {_FINE})?(?: for \w+)? to {_KNOW}{_ABOUT}{_OBJECT}\s+{_WHAT}{_TAIL}",
        rf"\bwould(?: have)?(?: also)? (?:be|been|help)(?: even)?(?: {_FINE})? if {_IT}(?: also| had| would)*\s+"
        rf"(?:{_MENTION}s?|{_MENTIONED}|{_TELL}s?|{_TOLD}|had|was|were){_OBJECT}{_ABOUT}\s+{_WHAT}{_TAIL}",
        rf"\bwould(?: have)? (?:be|been) (?:even )?{_FINE} with\s+{_WHAT}{_TAIL}",
        rf"\b(?:would|['’]d)(?: have)?(?: also)? (?:like[d]?|love[d]?|expect(?:ed)?|want(?:ed)?|appreciated?|welcomed?)(?: to (?:{_KNOW})){_ABOUT}\s+{_WHAT}{_TAIL}",
        rf"\b(?:would|['’]d)(?: have)?(?: also)? (?:like[d]?|love[d]?|expect(?:ed)?|appreciated?|welcomed?)\s+(?!to\b|it\b){_WHAT}{_TAIL}",
        rf"\b(?:would|['’]d)(?: have)?(?: also)? (?:add|added|mention|mentioned|include|included)(?: something| a (?:line|word|sentence|note))?(?: about| on)?\s+{_WHAT}{_TAIL}",
        rf"^(?:i )?would love\s+(?!to\b){_WHAT}{_TAIL}",
        rf"\bi (?:also |really |still )?(?:want|wanted|expected|hoped|was hoping|was expecting)(?: to (?:{_KNOW}))(?: something| more| a bit)?(?: about| on)?\s+{_WHAT}{_TAIL}",
        rf"\bi (?:expected|was expecting|was looking for|looked (?:in vain )?for|searched (?:in vain )?for|hoped for|was hoping for)\s+(?!to\b){_WHAT}{_TAIL}",
        rf"\bi wish (?:{_IT}|he|she)(?: had| also)*\s+(?:{_MENTION}s?|{_MENTIONED}|{_TELL}s?|{_TOLD}){_OBJECT}{_ABOUT}\s+{_WHAT}{_TAIL}",
        rf"\bi wish there (?:was|were|had been)\s+{_WHAT}{_TAIL}",
        rf"\bi still (?:don['’]?t|do not) (?:know|understand)\s+{_WHAT}{_TAIL}",
        rf"\bstill (?:have )?no idea\s+{_INDIRECT}{_WHAT}{_TAIL}",
        rf"\b(?:can['’]?t|cannot|could not|couldn['’]?t|did not|didn['’]?t|don['’]?t|do not) (?:find|see)\s+(?!how|why|what|where|that){_WHAT}{_TAIL}",
        rf"\b(?:never|don['’]?t|not|isn['’]?t|aren['’]?t)\s+(?:learns?|finds? out|told|informed(?: about| of)?|hears?(?: about)?)\s+{_WHAT}{_TAIL}",
        rf"\b(?:left|leaves? (?:me|us|you|the reader|readers)) (?:wondering|guessing|to guess|to wonder)\s+(?:about\s+)?{_WHAT}{_TAIL}",
        rf"\bnobody (?:knows|learns|will know)\s+{_INDIRECT}{_WHAT}{_TAIL}",
        rf"^(?:(?:and|but|so|ok|okay|hm+|also)[\s,]+)*where(?:['’]?s| is| are| has| have| did)\s+{_WHAT}(?:\s+(?:gone|go))?\s*\?",
        rf"^(?:(?:and|but|so|ok|okay|hm+|also)[\s,]+)*(?:what|how) about\s+{_WHAT}\s*\?",
        rf"^and\s+(?=(?:the|an?|my|your|his|her|their|any)\s)(?P<what>(?:[\w'’-]+\s?){{1,6}}?)\s*\?",
        rf"\bwhat(?: has| ever)? happened to\s+{_WHAT}\s*\?",
        rf"\bwhy (?:is|are|was|were) there no\s+{_WHAT}{_TAIL}",
        rf"^why no\s+{_WHAT}{_TAIL}",
        rf"\bwhy (?:not|(?:does|did) {_IT} not|(?:doesn|didn)['’]?t {_IT}|no|any reason not to) (?:{_MENTION}|{_TELL}){_ABOUT}\s+{_WHAT}{_TAIL}",
        rf"\bany reason not to (?:{_MENTION})\s+{_WHAT}{_TAIL}",
        rf"\bwhy (?:is|are|was|were)(?:n['’]t| not)? {_WHAT}(?: not)? {_MENTIONED}\b",
        rf"^(?:(?:and|but|so|ok|also)[\s,]+)*(?P<what>(?:how {_SIZE}|when|at what|what (?:time|temperature|size|day|date|year|age))\s[^?]+?)\s*\?",
        rf"^without\s+{_WHAT}\s+(?:it|this|the \w+)\s(?:is|feels|seems|remains) (?:incomplete|not complete|useless)",
        rf"\bincomplete without\s+{_WHAT}{_TAIL}",
        rf"\btoo little (?:about|on)\s+{_WHAT}{_TAIL}",
        rf"\bstops before\s+{_WHAT}{_TAIL}",
        rf"^{_WHAT}\?\s*not in there",
    )
)
_TRIGGER = re.compile(
    r"\b(?:not|\w+n['’]?t|no|never|nothing|cannot|nowhere|fail\w*|neglect\w*|forg[eo]t\w*|omit\w*|leav\w*|left|skip\w*|overlook\w*|gloss\w*"
    r"|ignor\w*|lack\w*|miss\w*|silent|absent|should\w*|must|ought|needs?|could\w*|might|may|has to|have to|can|add|include|mention|insert|say|tell|explain"
    r"|state|specify|clarify|would|i['’]d|expect\w*|hop\w+|look\w*|wish|want\w*|where\w*|what|how|when|why|and|without|incomplete|little|more|some"
    r"|nobody|search\w*|stops|unmentioned|lost|any)\b",
    re.IGNORECASE,
)
_SOURCE = re.compile(
    r"\b(?:source|articles?|document|passage|transcript|interview|original(?! summary)|the (?:text|report|paper|story|study|material|minutes))\b",
    re.IGNORECASE,
)
_ABOUT_SOURCE = re.compile(
    r"[^.;!?]*\b(?:in|by|from|of|with|anywhere in)\s+(?:the|this|that|my)?\s*(?:\w+\s)?(?:source|articles?|document|passage|transcript|interview|original|text|report"
    r"|paper|story|study|minutes|notes)\b",
    re.IGNORECASE,
)
_NOT_A_THING = re.compile(
    r"(?:it|this|that|these|those|them|him|her|so|one|much|many|any|anything|everything|nothing|something|all|more|better|less|else|otherwise|you|what|who|i"
    r"|the (?:point|mark|reader|question|gist|boat|target|obvious|same|opposite|whole point|task|instructions?|answer|result)|a (?:beat|thing|lot|trick|word|bit)|well|out|there|here|enough|too|(?:the )?only)\b\s*$"
    r"|(?:anything|a thing|a word|one word|any word|any of|any other|it|this|that) (?:that|which|is|was|of|wrong|bad|else|as|in|for|so|to)\b"
    r"|(?:an? |any |single |much |more |some |of |real |good |such |major |strong |unsupported |false |wrong )*"
    r"(?:errors?|mistakes?|problems?|issues?|bugs?|faults?|flaws?|complaints?|objections?|need|reasons?|doubts?|way|sense|idea|evidence|proof|support|basis|point|use"
    r"|harm|surprise|depth|punch|clarity|substance|warmth|structure|focus|flow|coherence|polish|tact|charm|life|logic|work|rewrite|rewriting|trim|trimming|editing"
    r"|edit|fix|fixing|cut|cutting|changes?|improvement|improvements|corrections?|correcting|checking|attention|overhaul|relevance|justification|excuse|bearing|comment"
    r"|trouble|surprises|typos?|fluff|filler|choice|doubt|quarrel|nonsense|such thing|one else|longer|connection|business|place|value|room|wrong|notes?|thanks|good|nothing|worries|clue|opinion|shortening|love|refactoring|cleanup|proofreading|simplification|details?|sources?|claims|feelings"
    r"|human|effect|more precise|more careful|help|longer true|match|mention)(?=\s*$|\s+(?:to|for|with|in|of|at|on|about|that|whatsoever|here|left|needed|made|found|writes|could|can|would)\b)|(?:for|if|whether|it|more \w+) ",
    re.IGNORECASE,
)
_JUDGED = re.compile(
    r"\b(?:well|properly|clearly|correctly|enough|better|shorter|clearer|simpler|longer|warmer|different|accurate|accurately|precise|wrong|false|bad|good)\s*$",
    re.IGNORECASE,
)
_UNDONE = re.compile(
    r"\b(?:(?:not|\w+n['’]t|never|no longer|nothing(?: \w+)?(?: is| was| has been)?|hardly|without|hasn['’]t)(?:\s+\w+){0,2}?\s+"
    r"(?<!you )(?:forg[eo]t\w*|omit\w*|leav\w+|left|skip\w*|overlook\w*|neglect\w*|ignor\w*|lack\w*|miss(?:es|ed|ing)?|absent)"
    r"|nothing(?: \w+)? (?:is|was|has been|seems)(?! said)|don['’]t (?:forget|need|miss|mention|add|include)|do not (?:forget|mention|add|include)"
    r"|(?:should|must|could|need)(?: not|n['’]t) (?:mention|include|add|have (?:mentioned|included|added))(?!.*\?)"
    r"|right (?:not )?to (?:leave|omit|skip)|no need to|glad|good that|thank)",
    re.IGNORECASE,
)
_PRAISED_ABSENCE = re.compile(r"\b(?:should|must)(?: not|n['’]t)|no need|right to|good that|glad|rightly|wisely", re.IGNORECASE)


def find_missing(masked: str, start: int, end: int) -> Range | None:
    """Return the range of the words that name what is missing, if the clause at `start`..`end` says that it is.

    masked: the comment, the characters of its quotations replaced. What a source does not mention is not missing, nor
    is what an answer "does not leave out".
    """
    clause = masked[start:end]
    if not _TRIGGER.search(clause):
        return None
    for pattern in _PATTERNS:
        for match in pattern.finditer(clause):
            found = _trim(clause, *match.span("what"))
            if found is not None and _is_missing(clause, match, found):
                return start + found[0], start + found[1]
    return None


def _trim(clause: str, start: int, end: int) -> Range | None:
    words = clause[start:end]
    lead = re.match(r"(?:(?:about|also|any mention of|a word (?:about|on)|to mention|anything about|something about|even)\s+|[\"'“‘]+)+", words, re.IGNORECASE)
    start += lead.end() if lead else 0
    end = start + len(clause[start:end].rstrip(" \t\"'”’-–—"))
    return (start, end) if start < end else None


def _is_missing(clause: str, match: re.Match[str], found: Range) -> bool:
    words, before, after = clause[found[0] : found[1]], clause[: match.end()], clause[found[1] :]
    if _NOT_A_THING.match(words) or _JUDGED.search(words) or _UNDONE.search(clause):
        return False
    subject = clause[: found[0]] if match.start("what") > match.start() else ""
    if _SOURCE.search(subject) or _ABOUT_SOURCE.match(after):
        return False
    return not (_SOURCE.search(words) and _SOURCE.search(before) and " in " in words)
