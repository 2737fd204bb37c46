"""Words by what they do in a comment: praise, blame, negate, hedge, wish, name the source, ask for a change.

A word stands for its regular forms as well. `IDIOMS` are phrases that mean something else than their words.
"""

from __future__ import annotations

_WORDS = {
    "praise": """
        acceptable accessible accomplished accuracy accurate ace actionable adept adequate admirable admire adorable
        adore agree airtight airy amazed amazing amen amiable ample amuse appealing appetising applaud applause
        appreciate approachable appropriate approval approve apt aromatic artful articulate astonishing astute
        attention-to-detail attentive authentic authoritative awesome aye balanced bang-on beautiful beautifully
        beginner-friendly believable beneficial best bingo bless blessing boon bravo breathtaking breezy brevity
        brilliance brilliant brisk bug-free bulletproof captivating careful caring celebrate champion charming cherish
        civil clarify clarity clean clear clearest clever cogent coherent cohesive comforting commend commendable
        compact compassionate compelling competent complete comprehensible comprehensive concise confirmed congrats
        congratulations conscientious considerate consistency consistent constructive convincing cool cordial correct
        courteous creative credibility credible crisp crispy dandy dazzle dead-on decent definitive delicious delight
        delightfully demystify dependable descriptive digest digestible dignified diligent diplomatic disciplined
        distil distill divine dope down-to-earth easy edifying educational effective efficient effortless effortlessly
        elegance elegant eloquent elucidate empathetic encapsulate enchant encouraging endorse energetic engaging
        engross enjoy enjoyable enjoyment enlightening entertaining enthusiastic error-free erudite even-handed
        evocative exact excel excellence excellent exceptional exciting exemplary exhaustive expert expertly exquisite
        eye-opener eye-opening fab fabulous factual failsafe fair fair-minded faithful faithfully fantastic
        fascinating faultless favorite favourable favourite fine finest first-rate fitting flattering flavorful
        flavourful flawless flawlessly flowed flows fluent fluffy foolproof fortunately fresh friendly fun funny gem
        generous genial genius gentle genuine glad godsend good gorgeous graceful gracefully gracious grateful great
        gripping grounded hallelujah handsome handy happy harmonious heart-warming heartening heartfelt heartwarming
        hearty heavenly helpful hilarious honest honesty hooked hooray humor humorous humour hurrah huzzah idiomatic
        illuminating immaculate impartial impartially impeccable impress incisive incredible indeed indispensable
        informative ingenious insightful inspiration inspired inspiring instructive intelligent interesting intrigue
        intuitive invaluable inventive invigorating inviting ironclad jewel joy judicious juicy justified kind
        kindness knowledgeable kudos laudable lean legible legit legitimate level-headed lifelike lifesaver lifesaving
        likable like likeable lively logical lovable love loved lovely lucid luckily luscious lyrical magnificent
        marvel marvellous marvelous masterclass masterful masterly masterpiece memorable methodical meticulous modular
        moist motivating mouthwatering moving neat neatest neatly nice nicest nifty no-nonsense notable noteworthy
        nourishing nuanced objective ok okay okey on-point orderly organised organized outstanding painless painlessly
        painstaking palatable patient pearl peerless perceptive perfect persuasive pinpoint pithy plausible pleasant
        pleasantly pleased pleasing pleasure poetic poignant polished polite politeness powerful practical pragmatic
        praise praiseworthy precise precision presentable pretty priceless pristine professional proficient profound
        prompt proper props punchy quality readability readable realistic reassuring reassuringly recommend refined
        refreshing refreshingly relatable relaxing relevance relevant reliability reliable relish remarkable reputable
        resilient resonate resourceful respectable respectful responsible restrained rewarding right rigorous riveting
        robust rock-solid rounded salute satisfaction satisfactory satisfied satisfy satisfying savour scholarly
        scrumptious scrupulous seamless self-explanatory sensible sensitive seriousness sharp shine shipshape simple
        simplest sincere sincerity skilful skilfully skill skillful sleek slick smart smooth smoothest snappy soar
        solid soothing sophisticated sound sparkle spectacular spellbinding spirited splendid spotless standout
        stands-up stellar sterling stirring straightforward streamlined strength strong strongest structured stunning
        sturdy stylish sublime substantiated subtle success successful succinct sufficient suitable superb superbly
        superior superlative supportive sweet swell systematic tactful tasteful tastefully tasty taut tender terrific
        textbook thankfully thorough thoroughness thoughtful thoughtfully thrilled thrilling tidy timely tip-top
        top-notch touching transparent treasure tremendous triumph trouble-free true trust trustworthy trusty truthful
        unambiguous unbeatable unbiased uncluttered understandable understated unequivocal unimpeachable unmatched
        unpack unrivalled upbeat uplifting usable useful usefulness user-friendly valid valuable verifiable verified
        versatile vibrant vivid vividly vouch warm warmth warranted watertight welcome welcoming well well-balanced
        well-chosen well-explained well-founded well-grounded well-organised well-organized well-paced well-placed
        well-reasoned well-researched well-structured well-written wellmade wholesome winner wise wit witty wizard
        wonderful wonderfully workable worked worthwhile worthy wow yay yeah yep yes yummy yup zippy
        atmospheric catchy cheerful cheery classy cute delightful doable endearing epic extensible failproof glorious
        grammatical groovy imaginative impactful impressive inclusive innovative inspirational joyful legendary luminous
        magical maintainable majestic meaningful mindful mouth-watering performant phenomenal playful pythonic quotable
        radiant reasonable savvy scalable scannable skimmable snackable soulful suspenseful timeless unforgettable
        viable well-crafted well-documented well-done well-made well-put well-thought-out well-worded wondrous zesty
        """,
    "favour": """
        address adhere approve back benefit boost capture cite clarify click cohere comfort compile compiles comply
        concrete confirm conform convey convince correspond corroborate cover credible deepen deliver demonstrate
        deserve earn educate efficient encourage enhance enlighten enrich entertain evidence expected explain faithful
        finally fit follow fulfil fulfill gel grasp gratitude grip grounded guide handled handles help honor honour
        hook illuminate illustrate illustrative impress improve improves inform inspire laugh laughed lend linear
        match motivate nail obey pass passes persuade please preserve prove readable real-life real-world reassure
        reflect relate resolve respect runs satisfy simplify smile solve sourced specific strengthen substantiate
        succeed suit summarise support tally teach terminate thank thankful thanks trace traceable understand verify
        visualise visualize welcome work worth
        """,
    "blame": """
        abominable abrupt absurd abysmal advert advertisement advertising aggressive aimless alas alienate aloof
        amateurish ambiguity ambiguous anachronism anachronistic anaemic anger annoy annoyance annoying antiquated
        appalling arbitrary archaic argue arguing arrogance arrogant artificial asinine atrocious awful awkward
        awkwardness babble backfire backward bad badly baffling bah bait baseless befuddle belittle bewilder bias
        bigoted bitter bizarre bland blatant blather blemish bloated blot blunder blur blurb boastful boggling bogus
        boilerplate bombastic bored boredom boring bossy botch bother brittle broken brusque bug buggy bugs bulky
        bullshit bungle burnt callous canned cardinal careless carelessness catastrophic caveat cavil chaotic char
        cheap cheat cheesy childish choppy chore circles circular clash cliche cliched
        cliché clichéd clickbait clobber cloud cloying
        clueless clumsiness clumsy clunky clutter coarse cocky cold collapse collide complain complaint complexity
        complicated concerning concoct condemn condescend condescending conflate conflict confound confuse confusing
        confusion conjecture contest contradict contradiction contradictory contrived convoluted cookie-cutter cop-out
        corny corrupt counterproductive crap crappy crash crass cringe cringed cringeworthy criticise criticism
        criticize crude cruel cryptic cumbersome curdle curt daft damage danger dangerous dated deadlock deaf
        debatable debunked deceive deceptive defect defective defensive deficient demean dense deplorable deprecated
        derail derivative desperate destroy deviate digress dire directionless dirty disagree disappoint disappointing
        disappointment disaster disconcerting disconnected discourage discrepancy disgust dishonest disjointed dislike
        dismal dismay dismissive disorganised disorganized disorienting disproven dispute disregard disrespectful
        dissatisfied distasteful distort distortion distract distracting distraction disturb disturbing dither dodge
        dodgy doubtful downside drab drag dramatise drawback dreadful dreary drift drone dry dubious duff dull dumb
        dupe duplicate editorialise eek embarrass embarrassing embellish empty enrage erratic erroneous error errors
        evade evasive ew eww exaggerate exaggeration excessive exhausting eyesore fabricate fabrication facepalm fail
        failure fake fallacious fallacy false falsehood falsely falter far-fetched farce fault faultily faulty fawning
        feeble fiasco fiction fictional fictitious filler fishy fizzle fizzles flabby flaky flat flaw flawed flimsy
        flop florid flounder flowery flub fluff fool foolish forced formulaic foul fragile fragmented fraudulent
        freeze frighten frosty frustrating frustration fudge fumble fuss fuzzy gaffe gap gaps garbage garble garish
        gaudy generalisation generalization generic ghastly gibberish glacial glaring glib glitch gloomy gluey gnarly
        gobbledygook gossip grandiose grate grating greasy grim gripe gritty gross groundless grovelling gruesome
        grumble guess guessing guesswork hacky hairy half-hearted half-truth hallucinate hallucination hamper
        haphazard hardcoded harm harmful harsh hasty hate haughty hazard hazy head-scratcher headache hearsay
        heartless heavy-handed hesitate hesitation hiccup hideous hinder hindrance hmm hmmm hoax hokey hole hollow
        hopeless hopelessly horrendous horrible horrid horrific horrify hostile huh humdrum hurried hype icky idiotic
        iffy illegal illegible illiterate illogical illogically impatience impatient impenetrable impersonal
        implausible impolite impossibility impossible impractical imprecise improbable improper improperly inability
        inaccuracies inaccuracy inaccurate inadequate inappropriate inapt incoherent incompetent incomplete
        incomprehensible inconclusive inconsiderate inconsistencies inconsistency inconsistent inconvenient incorrect
        incorrectly indecent indecipherable indifferent inedible ineffective inefficient inelegant inept inexact
        inferior infinite inflate inflexible infuriate insane insecure insensitive insincere insipid insubstantial
        insufficient insult insulting intrusive invalid invasive invent invention invisible irk irksome irrational
        irrelevant irresponsible irreverent irritate irritating irritation issue issues jargon jarring jeez jerky
        judgemental judgmental jumble jumbled junk kitschy kludge kludgy lacklustre lame laughable lax laziness lazy
        leaden leak letdown lie lifeless limp loathe long-winded loose-ends lopsided lousy ludicrous lukewarm lumpy
        madness malfunction mangle manipulative maudlin mawkish meager meagre meander meaningless mechanical mediocre
        meh melodramatic mess messy misattribute miscalculate misconception misdirect misfire misguided mishandle
        misinform misinformation misinterpret misinterpretation misjudge mislabel mislead misleading mismatch
        mismatched misnamed misnomer misplace misplaced mispronounce misquote misread misrepresent misrepresentation
        misses misspell misspelling misstate mistake mistaken mistakenly mistimed mistranslate mistype misunderstand
        misunderstanding misuse mixed-up moan mock mockery monotonous moralise moronic muddle muddled muddy mumbo
        murky mushy myth naff nag naive nasty nauseating needy negligent nightmare nitpick nitpicking nitpicky nitwit
        non-answer nonanswer noncommittal nonexistent nonsense nonsensical nope nuisance obfuscate objection obscure
        obsequious obsolete obstacle obvious odd off-putting off-topic offend offensive old-fashioned omission omit
        oops opaque ouch outdated outlandish outrageous overblown overcomplicate overcomplicated overcooked overdone
        overdramatic overgeneralise overgeneralize overkill overloaded overlong overlook overly-long overreach
        oversalted oversell oversight oversimplification oversimplified oversimplify overstate overstatement overuse
        overused overwhelm overwhelming overwrought padding pain painful paltry parrot partisan passive-aggressive
        patchy pathetic patronise patronising patronizing peculiar pedantic pedestrian perplex phoney phony pitfall
        plagiarise pointless pompous ponderous poor prattle preach preachy prejudiced preposterous presume pretentious
        problem problematic prolix propaganda prosaic pseudo puny purposeless pushy puzzled puzzling quarrel
        questionable quibble racist ramble rambling random rant redundant refute regret regrettably regurgitate rehash
        repel repetition repetitive repulsive resent revolting ridiculous rigid risky robot robotic ropey rotten rough
        rubbery rubbish rude rudeness ruin rumor rumour rushed saccharine sadden sadly sanitise sappy sarcasm
        sarcastic scant scare scary scattered scorch scramble self-contradictory sensational sensationalise
        sensationalist senseless sexist shabby shady shaky shallow sham shame shoddy shortcoming sickening sidestep
        sidetrack sigh silliness silly simplistic sketchy skew skimpy slander slant slapdash sleep-inducing slip
        slipshod sloppy slow sluggish smarmy smug snag snarky sneer snippy snobbish snooty snooze snoozefest soggy
        soulless spaghetti spam sparse specious speculate speculation speculative spiel spoil spotty spurious squander
        stain stale stall stereotype stiff stilted stodgy stop-gap strange stray stretch struggle stuffy stumbled
        stumbling stupid stupidity subpar suck supercilious superficial superfluous suspect suspicious tabloid tacky
        tactless tangent tangential tangle tangled tasteless tautological tautology technobabble tedious tedium tepid
        terrible terse thin threadbare tiresome tone-deaf toxic trap trash travesty tripe tripped trite trivial
        trivialise trouble troubling truncate tsk turgid twisted typo typos ugh ugly unacceptable unappealing
        unappetising unattractive unbalanced unbearable unbecoming unbelievable uncalled unclear uncomfortable
        unconvincing undefined undercooked undermine unedited unethical uneven unfair unfathomable unfinished
        unfocused unfortunately unfounded unfriendly ungrammatical unhandled unhealthy unhelpful unimaginative
        unimpressive uninformative uninspired unintelligible uninteresting unlike unlikely unnatural unnecessary
        unneeded unoriginal unpalatable unpleasant unprofessional unproven unreachable unreadable unrealistic
        unreliable unresolved unsafe unsaid unsanitary unsatisfactory unsatisfying unsettle unstable unstructured
        unsubstantiated unsupported untested untidy untrue untrustworthy untruth unusable unused unverified unwanted
        unwarranted upset upsetting useless vacuous vague vagueness vapid veer verbose verbosity vile vulgar
        vulnerable waffle warp waste wasteful watery weak weakness weary weird whine whiny whitewash winced windy
        wishy-washy wobbly woeful wonky wooden woolly wordy worrisome worry worrying worse worst worthless wreck
        wreckage wrong wrongful wrongly yawn yawn-inducing yikes yuck yucky
        """,
    "spoil": """
        actually assume backwards bore bored break breaks broke burn bury cheap choke confuse contrary copied copy
        crowd cut-off derail differ difference different differs disappointed distract drop drown duplicate exhaust
        forever guess hang hedge hide hurt ignore imagine invented invert jump kill kills lecture lose lost miss
        misses mix neglect odd opposite overdid overdo oversell overwrite paste rant repeat reverse reversed rushed
        sink skip steal stop stray struggle stuck stumble swap swapped tire tired twice unsure wait wander weaken
        wrongly
        """,
    "not": """
        ain't anything-but arent avoid avoided avoiding avoids barely barely-any by-no-means cannot cant devoid-of
        didnt difficult-to doesnt dont far-cry-from far-from free-from free-of hard-to harder-to hardly hardly-any
        impossible-to in-no-way isnt minus neither never no nobody none nor not nothing nowhere nowhere-near prevents
        rarely refrain refrains resist resists scarcely seldom spare spares tough-to unable wasnt without wont zero
        """,
    "should": "should must ought need needs needed shall supposed require required",
    "could": "could would might'd wouldn couldn",
    "wish": """
        could've expected expecting hope hoped hoping instead prefer rather recommend should've suggest want wanted
        wants wish would've
        """,
    "if": "if unless whether",
    "but": "but however although though yet while whereas except despite nevertheless still otherwise",
    "too": "too overly excessively needlessly unnecessarily so",
    "very": """
        absolutely completely especially extremely highly particularly perfectly quite really remarkably totally truly
        very
        """,
    "mild": "slightly somewhat bit little rather kinda kind sort fairly pretty",
    "hedge": """
        apparently arguably doubt dunno guess idk may maybe might perhaps possibly presumably probably seem seems
        suppose uncertain unsure wonder wondering
        """,
    "more": """
        another better clearer earlier fewer further improve improved improvement later less longer more other shorter
        simpler softer tighter warmer
        """,
    "all": "all every everything each both everybody everyone always entire whole entirely fully any",
    "only": "only just merely simply",
    "source": """
        article context document excerpt interview material minutes notes original paper passage report source story
        text transcript
        """,
    "answer": """
        answer code draft email essay function implementation letter output program recipe reply response script
        solution summary translation version
        """,
    "say": """
        appear appears back backed claim claims contain contains describe described discuss discussed find found give
        given gives implied imply include included indicate indicated mention mentioned note present provide provided
        read reads refer reference references refers report reported said say says specified specify stand stands
        state stated suggest suggests support supported write written wrote
        """,
    "cut": """
        adjust alter change condense correct cut delete ditch double-check drop edit fix modify proofread recheck
        reconsider redo refactor remove rename reorder rephrase replace rethink revise reword rewrite shorten shrink
        simplify swap tamper tighten touch trim tweak
        """,
    "keep": "keep retain preserve leave",
    "add": "add insert include mention append give provide tell explain put expand elaborate",
    "lack": """
        absence absent forget forgets forgot forgotten lack lacked lacking lacks left-out miss missed misses missing
        omission omit omits omitted
        """,
    "me": "i me my mine we us our i'm i'd i've i'll",
    "you": "you your you're you've",
    "know": "know sure certain tell judge idea opinion clue check verify confirm seen familiar",
    "why": "why",
    "wh": "who whom what where when how which whose",
}

_PRAISE_IDIOMS = """
    spot on | bang on | on point | on the money | on the mark | to the point | hits the nail | hit the nail | nails it
    nailed it | nailed the | well done | good job | great job | nice job | good work | great work | nice work
    good call | nice touch | nice catch | nice one | good stuff | way to go | keep it up | keep up | thumbs up
    two thumbs up | hats off | chef's kiss | first class | first rate | top notch | top marks | full marks
    ten out of ten | 10 out of 10 | a gem | five stars | 5 stars | ten points | full points | checks out | adds up
    holds up | hold up | holds water | rings true | makes sense | make sense | made sense | does the job
    does the trick | did the trick | does its job | gets it right | got it right | got this right | gets this right
    get it right | got that right | gets the point across | hits home | hits the spot | works like a charm
    like a charm | works well | worked well | works a treat | a pleasure | a joy | a delight | a breeze | a pro
    easy to | easy on | sits well | sits right | flows well | flows nicely | sums up | sums it up | up to date
    up to scratch | up to the mark | up to standard | up to snuff | in good order | in line with | in keeping with
    in accordance with | consistent with | true to | faithful to | loyal to | close to the source | sticks to
    stick to | stays on topic | on topic | stays true | stays close | hard to beat | second to none | no notes
    no nonsense | no fluff | no frills | no brainer | nothing but praise | can't fault | cannot fault
    could not fault | couldn't fault | hard to fault | can't complain | cannot complain | can't go wrong
    what i wanted | what i needed | what i asked for | what i was looking for | just right | just what | as it should
    as it should be | as they should | as required | as expected | as requested | as promised | as intended | as asked
    as advertised | good to go | ready to go | ship it | lgtm | looks good | i'm sold | win win | worth its weight
    worth reading | worth keeping | worth the | big fan | a fan of | without a doubt | by heart | in a nutshell
    at a glance | a pat on the back | saved me | saves me | saved my | saves the reader | helped me | helps me
    made me smile | made me laugh | made my day | makes me want to | brought a smile | learned a lot | learnt a lot
    learned something | all good | all fine | all right | a ok | a okay | works for me | fine by me | happy with
    pleased with | stands out | a highlight | the highlight | best part | strong point | strongest point
    selling point | bonus points | brownie points | my hat off | pulls no punches | well above | above and beyond
    goes the extra mile | more than enough | more than happy | leaves nothing | leave as is | leave this as
    leave as it is | hands down | pure gold | gold standard | gets my vote | can stay | may stay | has my blessing
    error free | bug free | free of errors | free from errors | free of bugs | free of mistakes | free of | free from
    down to earth | crystal clear | clear cut | plain english | at ease | in one go | first try | better than | outdid
    outdone | impressed by | impressed with | sold me | sold on | bears out | borne out | bear out | backed up
    backs up | supported by | fair enough | without a hitch | no gaps | loose ends | laid out | knows their stuff
    knows his stuff | knows her stuff | would not hesitate | wouldn't hesitate | stays neutral | fair point
    good point | couldn't agree more | could not agree more | can't get enough | could not be better
    couldn't be better | can't be improved | cannot be improved | could not be improved | wouldn't change
    would not change | don't change | do not change | don't touch | makes up for | make up for | check out fine
    dates check out | add up | leaves no questions | talks sense
    """

_BLAME_IDIOMS = """
    make anything up | make stuff up | made anything up | making anything up | making things up | made up | makes up
    make up | making up | make things up | makes things up | made things up | off by | off by one | way off | bit off
    little off | is off | are off | was off | feels off | sounds off | off topic | off base | off the mark
    off the rails | off key | off putting | wide of the mark | misses the mark | missed the mark | misses the point
    missed the point | beside the point | out of nowhere | out of place | out of order | out of date | out of context
    out of the blue | out of line | out of touch | out of thin air | out of scope | out of bounds | out of range
    thin air | falls flat | fell flat | falls short | fell short | fall short | comes up short | falls apart
    fall apart | goes nowhere | go nowhere | leads nowhere | goes off | goes wrong | went wrong | gone wrong
    go wrong | goes against | let down | lets down | lets it down | let me down | lost me | lost in | loses me
    lost track | loses the thread | leaves a lot to be desired | leaves much to be desired
    leaves something to be desired | to be desired | no good | no sense | no use | no point | no way | not ok
    no thanks | no basis | no evidence | no support | no proof | too much | too many | too little | too few | too long
    too short | over the top | all over the place | all over the shop | a stretch | a reach | stretch of | a mess
    a joke | a chore | a slog | a drag | a bore | a bit much | less than ideal | leaves me cold | left me cold
    leaves me | makes no sense | doesn't add up | don't add up | does not add up | jumping to | jumps to
    jumps the gun | jump to conclusions | jumps around | around the bush | beats around | runs on | run on | drones on
    drags on | goes on and on | on and on | rambles on | waffles | waffle | waters down | watered down | word salad
    word soup | wall of text | mouthful | tongue twister | hard work | difficult to understand | not enough
    thumbs down | two left feet | for no reason | no reason to | no need for | no need to | without reason
    without need | takes liberties | liberties with | plays fast and loose | puts words | put words | words into
    twists | twisted | sugar coats | sugarcoats | glosses over | gloss over | glossed over | brushes over
    brushes aside | skates over | skims over | sweeps under | sweeps aside | leaves out | left out | leave out
    leaving out | turns into | mixes up | mixed up | mix up | muddles up | messes up | messed up | mess up | screws up
    screwed up | fouls up | cocked up | blows up | blew up | breaks down | break down | breaks on | breaks when
    breaks if | chokes on | trips over | trip over | trips up | gives up | gave up | i gave up | put me off
    puts me off | turned off | rubs me | sticks out | sore thumb | raises eyebrows | raised my eyebrows
    raises questions | begs the question | says who | since when | come on | give me a break | you must be joking
    you can't be serious | what the | are you kidding | wishful thinking | old hat | half baked | half true
    half truth | hand waving | hand wavy | handwavy | hit and miss | hit or miss | patchy | cut and paste | copy paste
    copy and paste | copied and pasted | one sided | one note | long winded | wordy | back to front | upside down
    wrong way round | wrong way | the other way round | the other way around | other way round | other way around
    vice versa | not what | never happened | didn't happen | did not happen | isn't true | no such | there is no such
    could be better | could be clearer | could be improved | could be shorter | could be stronger | could be tighter
    could do with | could use | could have been | could've been | can be improved | room for improvement
    better off without | would rather | i'd rather | would prefer | i'd prefer | would be nicer | would be clearer
    would be stronger | would be perfect if | would be nice if | would be good if | would be great if
    would be helpful if | would help if | would help to | would have been | would've been | if only | better if
    nicer if | clearer if | stronger if | better without | better to | needs work | in need of | a pity | a shame
    too bad | what a pity | what a shame | sad to | sorry but | i'm afraid | afraid that | i don't buy | don't buy
    hard to swallow | hard pressed | red flag | red herring | dead end | deal breaker | nail in the coffin
    last straw | eye roll | rolled my eyes | cringe | made me cringe | makes me cringe | not needed | not necessary
    not required | isn't needed | isn't necessary | aren't needed | at odds with | contrary to | in conflict with
    conflicts with | clashes with | flies in the face | at face value | taken at | cherry picks | cherry picked
    jumps from | no idea where | don't know where | comes from nowhere | not the same | not the case | the opposite
    opposite of | quite the opposite | backwards | wrong end | for nothing | of no | short of | stops short
    cut short | cuts off | breaks off | trails off | peters out | fizzles out | get to the point | gets in the way
    get in the way | talks down | goes beyond what | clear as mud | as mud | like cardboard | good luck | nice try
    yeah right | only partly | almost right | not so
    """

_HEDGE_IDIOMS = """
    not sure | not certain | not so sure | no idea | no clue | can't tell | cannot tell | can't say | cannot say
    can't judge | cannot judge | hard to say | hard to tell | hard to judge | don't know | do not know
    not in a position | beyond me | above my pay grade | could be | may be | might be | either way | in two minds
    jury is out | jury's out | on the fence | no opinion | no strong opinion | don't mind | neither here nor there
    depends on | it depends | remains to be seen | time will tell | who knows | your guess | haven't checked
    have not checked | haven't read | haven't tried | haven't tested | not tested | not checked | have to check
    need to check | would need to | would have to | can't verify | cannot verify | couldn't verify | not verified
    hard to verify | as far as i know | as far as i can tell | i think so | if i remember | mixed feelings | so so
    take it or leave it | neither good nor bad | not qualified | not an expert | no expert | remains unclear
    open question | up for debate | some would say | matter of taste | question of taste | more or less
    """


def _phrases(idioms: str) -> list[tuple[str, ...]]:
    return [tuple(phrase.split()) for line in idioms.splitlines() for phrase in line.split("|") if phrase.strip()]


ROLES: dict[str, list[str]] = {role: words.split() for role, words in _WORDS.items()}
IDIOMS: dict[tuple[str, ...], str] = {
    phrase: role
    for role, idioms in (("praise", _PRAISE_IDIOMS), ("blame", _BLAME_IDIOMS), ("hedge", _HEDGE_IDIOMS))
    for phrase in _phrases(idioms)
}
