"""Words by what they do in a comment: praise, blame, negate, hedge, wish, name the source, ask for a change.

Words stand for all words of the same stem. `IDIOMS` are phrases that mean something else than their words.
"""

from __future__ import annotations

_WORDS = {
    "praise": """
        accessible accomplished accurate adept admirable adorable amazing ample appealing appetising appreciate
        appropriate approve apt articulate astute attentive authentic awesome balanced beautiful beneficial best
        bravo breathtaking brilliant bulletproof captivating careful charming clarify clarity clean clear clever coherent
        cohesive comforting commendable compelling competent comprehensible comprehensive concise congrats
        congratulations considerate consistent constructive convincing cool correct courteous creative credible crisp
        cute dandy delicious delight dependable descriptive digestible diligent dope easy economical effective efficient
        effortless elegant eloquent engaging enjoy enlightening entertaining enthusiastic evocative exact excellent
        exceptional exciting exemplary exhaustive expert exquisite fab fabulous factual fair faithful fantastic
        fascinating favourite favorite fine first-rate fitting flawless flow fluent foolproof fresh friendly fun funny
        gem generous genius gentle genuine glad good gorgeous graceful gracious grateful great handy happy
        harmonious heartfelt helpful honest hooray humorous idiomatic immaculate impartial impeccable important
        impress incisive incredible indispensable informative ingenious insightful inspiring instructive
        intelligent interesting intuitive inventive invaluable joy judicious kind kudos laudable legible like lively
        logical lovely love loved lucid magnificent marvellous marvelous masterful masterpiece memorable meticulous mighty
        modular moving neat nice nifty nuanced objective organised outstanding painless palatable patient perceptive
        perfect persuasive pithy pleasant pleased pleasing pleasure plausible polished polite powerful practical praise precise
        presentable pretty pristine professional proficient profound prompt proper props punchy quality
        readable reassuring refined refreshing relatable relevant reliable remarkable resourceful respectful responsible
        reputable rigorous robust satisfied satisfying scrumptious seamless sensible sensitive sharp simple sincere skilful skillful
        sleek slick smart smooth snappy solid sophisticated sound spectacular splendid spotless stellar straightforward
        strength strong structured stunning stylish sublime succinct successful sufficient suitable super superb superior
        supportive tactful tasteful tasty terrific thorough thoughtful tidy timely top-notch tremendous
        trustworthy truthful understandable unbiased unambiguous useful usable valid valuable versatile vivid
        warm welcome well-written well-structured well-organised well-organized wholesome win winner wise witty
        wonderful workable worthwhile worthy wow yummy yay yes ace agree commend applaud spotless enjoyable bang-on
        on-point error-free bug-free well well-chosen well-placed well-paced well-balanced well-explained well-researched
        applause right true verified verifiable substantiated confirmed faithfully
        sweet ace tip-top shipshape unimpeachable faultless watertight airtight rock-solid ironclad failsafe resilient
        sturdy trusty sterling textbook masterly artful poetic lyrical dignified restrained understated subtle even-handed
        fair-minded level-headed down-to-earth no-nonsense pragmatic actionable user-friendly beginner-friendly approachable
        inviting welcoming cordial amiable genial civil diplomatic empathetic compassionate caring soothing heartening
        heart-warming heartwarming touching poignant stirring uplifting motivating encouraging energetic spirited zippy taut
        lean compact streamlined uncluttered orderly methodical systematic organized disciplined transparent unequivocal
        self-explanatory mouthwatering flavourful flavorful moist tender fluffy juicy divine heavenly luscious hearty
        lifesaver godsend boon blessing treasure jewel pearl triumph success hit champion treat marvel inspiration
        eye-opener eye-opening illuminating edifying educational knowledgeable erudite scholarly authoritative definitive
        cogent well-founded well-grounded well-reasoned grounded justified warranted legit legitimate believable realistic
        lifelike dead-on pinpoint painstaking scrupulous conscientious rounded complete adequate satisfactory
        acceptable decent respectable praiseworthy noteworthy notable standout unbeatable unmatched unrivalled peerless
        adore admire cherish relish savour endorse recommend vouch salute celebrate bless trust excel shine sparkle soar dazzle
        delight enchant engross intrigue amuse satisfy resonate demystify unpack distil distill encapsulate
        elucidate favourable flattering hilarious lifesaving priceless rewarding riveting gripping spellbinding
        superlative swell thrilled thrilling trouble-free upbeat vibrant worked wizard amazed astonishing
        stands-up okay ok okey kudos hurrah huzzah hallelujah amen bingo yep yeah yup aye indeed clearest smoothest nicest finest
        strongest neatest simplest
        """,
    "favour": """
        help explain illustrate demonstrate clarify support strengthen illuminate enrich simplify
        enlighten back summarise capture convey address cover respect preserve reflect match
        resolve solve succeed work avoid handle understand credible evidence verify confirm corroborate substantiate prove
        grasp relate visualise visualize guide teach inform deepen enhance improve illustrative cite concrete
        real-world real-life context
        tally correspond conform comply obey honour honor adhere fit suit click gel cohere lend credible convince
        persuade educate inspire motivate encourage reassure comfort deliver please entertain impress hook grip nail
        earn deserve worth traceable trace sourced grounded reference detail specific faithful fulfil fulfill meet satisfy
        terminate compile compiles passes pass runs efficient linear expected smile laugh laughed improves readable finally
        thank thanks thankful gratitude approve welcome benefit boost
        """,
    "blame": """
        abrupt absurd abysmal aimless ambiguous amateurish annoying appalling arbitrary archaic arrogant artificial
        asinine awful awkward bad badly baffling baseless bias bizarre bland blatant bloated blunder boggling
        bogus boilerplate boring bother botch brittle broken bug buggy bulky bullshit bungle careless chaotic cheap
        cheat childish choppy chore clash cliche cliched clueless clumsy clunky clutter coarse cold collapse
        complain complaint complicated concern concerning condescending confuse confusing contradict contradiction contrived
        convoluted corny corrupt counterproductive crap crappy crash cringe cringeworthy crude cruel cryptic cumbersome
        damage danger dangerous dated deaf deceive deceptive defect defective deficient dense deplorable
        deviate digress dire dirty disagree disappoint disappointing disaster disconnected discrepancy disgust
        dishonest disjointed dislike dismal dismissive disorganised disorganized disrespectful distort distract doubtful drab
        drag dreadful dreary dubious duff dull dumb duplicate dry embarrass embarrassing erroneous error evasive
        exaggerate exaggeration excessive fabricate fabrication fail failure fake fallacious fallacy false falsehood fault faulty
        far-fetched feeble fiction fictional fictitious filler fishy flabby flat flaw flawed flimsy flop fluff flub
        forced foul fragile frustrating fudge fuzzy gaffe garble garbage generic gibberish glaring glib
        glitch gloomy grating grim gross gruesome guess guesswork hallucinate hallucination hamper haphazard harm harmful harsh hasty hate
        hazy heavy-handed hideous hiccup hinder hole hollow hopeless horrendous horrible horrid horrific
        idiotic illegible illogical impolite impossible improper inaccurate inadequate inappropriate incoherent
        incomplete incomprehensible inconclusive inconsistent incorrect indecipherable inefficient inept inflate inferior
        insane insecure insincere insensitive insufficient insult invalid invent invention irrational
        irrelevant irresponsible irritating jargon jarring jumble jumbled junk kitschy lame laughable lacklustre lazy lie
        limp loathe long-winded lousy ludicrous lukewarm madness mangle manipulative mediocre meander meaningless
        mess messy misattribute miscalculate misconception misguided mishandle misinform misinformation misinterpret misjudge mislabel mislead
        misleading misplace misplaced misquote misread misrepresent misspell misspelling misstate mistake mistaken mistranslate
        misunderstand misuse mixed-up monotonous muddle muddled mumbo murky naive nasty negligent
        nightmare nitpick nonexistent nonsense nonsensical nope obscure obsolete obvious odd offensive offend off-putting
        off-topic omit omission outdated outrageous oversimplify oversimplified overblown overcomplicated overcomplicate overdone
        overkill overlong overlook overstate overwhelm overwrought padding painful passive-aggressive pathetic patronise patronising patronizing
        pedantic peculiar plagiarise pointless pompous ponderous poor preachy pretentious problem problematic prolix
        propaganda puzzled puzzling questionable rambling ramble random rant redundant regret repetitive repetition repulsive
        ridiculous rigid risky robotic rough rubbish rude ruin rushed sarcastic scattered scary senseless sexist shabby
        shaky shallow shame shoddy sketchy skimpy slander slapdash slip sloppy slow sluggish smug snobbish
        soggy soulless spam speculate speculation speculative spoil spurious stale stereotype stiff stilted strange stray struggle stuffy stupid subpar
        suck superfluous superficial suspicious tacky tactless tangent tangential tangled tasteless tedious terrible terse threadbare
        tiresome tedium toxic trash trite trivial trouble troubling trivialise tripe twisted typo ugly unacceptable unappealing
        unconvincing undermine uneven unfair unfocused unfounded unnecessary unreadable unsafe
        unsubstantiated unsupported untrue untested unverified upset upsetting useless vague vulgar vulnerable wasteful waste
        weak weakness weird wishy-washy woeful wonky woolly wordy worrisome worrying worse worst worthless
        wrong yikes yuck yawn erratic wobbly watery overcooked undercooked inedible bitter mushy incorrectly debunked
        slander mismatch misnomer misdirect mistype nitpicky meh ugh bah huh deadlock overflow typos hang loops
        infinite unhandled leak verbose verbosity inapt inconvenient inflexible
        illegal unethical unrealistic implausible improbable unlikely disproven refute oversight misses
        quarrel grumble moan gripe whine criticise criticize criticism object objection nag quibble cavil condemn drift digress veer
        derail sidetrack drone prattle blather babble waffle dither dodge evade sidestep whitewash sanitise sensationalise
        sensationalist sensational editorialise moralise preach condescend mock sneer belittle demean alienate irk grate collide
        conflict confound conflate fumble flounder falter stall freeze malfunction misfire backfire truncate
        clobber scramble tangle obfuscate cloud blur muddy befuddle bewilder perplex exhausting weary annoy
        irritate infuriate anger enrage sadden dismay repel horrify shock scare frighten alarm worry disturb unsettle
        parrot regurgitate rehash overuse embellish dramatise hype oversell skew slant warp concoct presume
        trick dupe wreck destroy doom squander scorch char curdle cheesy sappy mawkish saccharine maudlin gaudy
        garish flowery florid bombastic grandiose stodgy turgid leaden wooden lifeless mechanical robot impersonal formulaic
        canned cookie-cutter derivative unoriginal uninspired pedestrian prosaic humdrum insipid vapid vacuous empty hokey
        phoney phony sham smarmy obsequious fawning grovelling cloying curt brusque snippy snarky hostile aggressive pushy
        bossy whiny needy desperate defensive noncommittal opaque impenetrable unfathomable unintelligible hairy
        gnarly spaghetti hacky kludgy kludge hardcoded flaky leaky glacial deprecated antiquated old-fashioned
        anachronistic anachronism preposterous outlandish silly daft foolish fool moronic half-hearted tepid anaemic puny paltry
        meagre meager scant sparse thin patchy spotty lopsided unbalanced partisan prejudiced racist bigoted
        tone-deaf callous heartless frosty aloof snooty haughty supercilious cocky boastful unprofessional unbecoming
        indecent crass distasteful slipshod lax hurried jerky fragmented directionless purposeless
        gobbledygook technobabble windy tautological tautology circular self-contradictory specious
        fraudulent groundless unproven suspect shady iffy dodgy ropey naff crap rotten atrocious abominable ghastly vile
        revolting nauseating sickening icky yucky unappetising unpalatable rubbery burnt raw greasy gluey lumpy gritty
        salty oversalted wreckage fiasco catastrophe catastrophic travesty mockery farce sin crime cardinal eyesore
        headache pain nuisance hindrance obstacle stumbling drawback downside shortcoming weakness pitfall trap caveat snag
        blemish blot stain inaccuracy inaccuracies untruth half-truth myth hoax rumour rumor hearsay gossip conjecture bait
        clickbait tabloid ad advert advertisement advertising spiel fluff blurb cop-out non-answer nonanswer
        contradictory backward illiterate ungrammatical mispronounce mistakenly wrongly falsely unfortunately sadly
        regrettably alas oops ouch eek ew eww jeez sigh facepalm hmm hmmm tsk hopelessly dead stop-gap bored boredom snooze
        snoozefest sleep-inducing yawn-inducing head-scratcher circles irksome nitwit careless silliness overuse
        unneeded unwanted uncalled unwarranted unhelpful unusable unreliable unstable unpleasant unfriendly unsatisfying
        unsatisfactory uninteresting uninformative unimpressive unimaginative uncomfortable unattractive unnatural
        undefined unused unreachable unresolved untidy unstructured untrustworthy unbelievable unbearable impractical
        inconsiderate inelegant ineffective insubstantial invisible disregard discourage disconcerting disorienting
        disturbing dissatisfied distracting overloaded overly-long overused overwhelming overreach overgeneralise
        overgeneralize generalisation generalization oversimplification stretch lacklustre
        """,
    "spoil": """
        lose lost miss confuse hide hurt ignore neglect repeat skip wander stray stumble swap mix swapped
        jump crowd bury drown distract derail invert reversed backwards stop stuck drop weaken
        burn odd unsure cut-off rushed bored tired expect disappointed struggle bore contain twice
        wander rant lecture hedge guess imagine assume invert overwrite reverse wrongly duplicate shift misses steal copy copied paste
        tire exhaust hang choke break breaks broke sink kill kills overdo overdid cheap oversell stuck forever wait
        different differs differ difference opposite contrary versus actual actually fact inserted invented
        reader beginner alien dream mud cardboard clown toddler novel
        """,
    "not": """
        not no never nothing none neither nor nobody nowhere cannot without hardly barely scarcely seldom rarely
        zero few unable ain't isnt doesnt dont didnt cant wont wasnt arent
        """,
    "should": "should must ought need needs needed shall supposed require required",
    "could": "could would might'd wouldn couldn",
    "wish": "wish hope hoped hoping prefer want wanted wants expected expecting rather instead would've should've could've suggest recommend",
    "if": "if unless whether",
    "but": "but however although though yet while whereas except despite nevertheless still otherwise",
    "too": "too overly excessively needlessly unnecessarily so",
    "very": "very really absolutely totally completely highly truly extremely quite particularly especially perfectly remarkably",
    "mild": "slightly somewhat bit little rather kinda kind sort fairly pretty",
    "hedge": """
        maybe perhaps probably possibly might may seems seem guess suppose apparently presumably unsure uncertain doubt
        arguably dunno idk unclear wonder wondering
        """,
    "more": "more less better longer shorter fewer earlier later simpler tighter further another other improve improved improvement clearer softer warmer",
    "all": "all every everything each both everybody everyone always entire whole entirely fully any",
    "only": "only just merely simply",
    "source": "source article text passage document original report context paper material transcript story interview minutes notes excerpt",
    "answer": "summary answer response reply output draft translation version code function program script solution implementation letter email recipe essay",
    "say": """
        say says said state stated mention mentioned claim claims report reported include included contain contains
        suggest suggests imply implied indicate indicated specify specified describe described write wrote note
        written given gives give provide provided present found find support supported back backed read reads stated
        discuss discussed stands stand appear appears refer refers reference references
        """,
    "cut": """
        remove delete drop cut trim shorten replace change rewrite rephrase fix correct reword edit revise modify redo
        reconsider rename reorder swap scrap strike axe ditch tighten condense shrink move avoid stop rethink
        refactor simplify proofread recheck double-check
        """,
    "keep": "keep retain preserve leave",
    "add": "add insert include mention append give provide tell explain put expand elaborate",
    "lack": "lack lacks lacking missing miss misses missed omit omits omitted omission forgot forget forgets forgotten left-out absent absence lacked",
    "me": "i me my mine we us our i'm i'd i've i'll",
    "you": "you your you're you've",
    "know": "know sure certain tell judge idea opinion clue check verify confirm seen familiar",
    "why": "why",
    "wh": "who whom what where when how which whose",
}

_PRAISE_IDIOMS = """
    spot on | bang on | on point | on the money | on the mark | to the point | hits the nail | hit the nail | nails it
    nailed it | nailed the | well done | good job | great job | nice job | good work | great work | nice work | good call
    nice touch | nice catch | nice one | good stuff | way to go | keep it up | keep up | thumbs up | two thumbs up | hats off
    chef's kiss | first class | first rate | top notch | top marks | full marks | ten out of ten | 10 out of 10 | a gem
    five stars | 5 stars | ten points | full points | checks out | check out | adds up | holds up | hold up | holds water
    rings true | makes sense | make sense | made sense | does the job | does the trick | did the trick | does its job | gets it right | got it right
    got this right | gets this right | get it right | got that right | gets the point across | hits home | hits the spot | works like a charm | like a charm | works well | worked well
    works a treat | a treat | a pleasure | a joy | a delight | a breeze | a pro | easy to | easy on | sits well | sits right
    flows well | flows nicely | sums up | sums it up | up to date | up to scratch | up to the mark | up to standard | up to snuff | in good order | in order | in line with
    in keeping with | in accordance with | consistent with | true to | faithful to | loyal to | close to the source | sticks to | stick to | stays on topic
    on topic | stays true | stays close | hard to beat | second to none | no notes | no nonsense | no fluff | no frills | no brainer
    nothing but praise | can't fault | cannot fault | could not fault | couldn't fault | hard to fault | can't complain | cannot complain | can't go wrong | what i wanted
    what i needed | what i asked for | what i was looking for | just right | just what | as it should | as it should be | as they should | as required | as expected
    as requested | as promised | as intended | as asked | as advertised | good to go | ready to go | ship it | lgtm | looks good | i'm sold | win win | worth its weight | worth reading
    worth keeping | worth the | big fan | a fan of | no doubt | without a doubt | by heart | in a nutshell | at a glance | a pat on the back
    saved me | saves me | saved my | saves the reader | helped me | helps me | made me smile | made me laugh | made my day | makes me want to | brought a smile
    learned a lot | learnt a lot | learned something | all good | all fine | all right | a ok | a okay | works for me | fine by me | happy with | pleased with
    stands out | shines | shine | a highlight | the highlight | best part | strong point | strongest point | selling point | bonus points | brownie points | my hat off | pulls no punches
    well above | above and beyond | goes the extra mile | goes beyond | more than enough | more than happy | leaves nothing | leave as is | leave it | leave this as | leave as it is
    hands down | pure gold | gold standard | golden | gets my vote | can stay | may stay | has my blessing | error free | bug free | free of errors | free from errors
    free of bugs | free of mistakes | free of | free from | down to earth | crystal clear | clear cut | plain english | at ease | in one go | first time | first try
    not only | not just | better than | outdid | outdone | impressed by | impressed with | sold me | sold on | bears out | borne out | bear out
    backed up | backs up | back up | supported by | in the source | fair enough | fair point | good point | couldn't agree more | could not agree more | can't get enough
    could not be better | couldn't be better | can't be improved | cannot be improved | could not be improved | wouldn't change | would not change | don't change | do not change | don't touch
    """

_BLAME_IDIOMS = """
    made up | makes up | make up | making up | make things up | makes things up | made things up | off by | off by one | way off | far off | bit off | little off | is off | are off | was off
    feels off | sounds off | off topic | off base | off the mark | off the rails | off key | off putting | wide of the mark | misses the mark | missed the mark | misses the point | missed the point
    beside the point | out of nowhere | out of place | out of order | out of date | out of context | out of the blue | out of line | out of touch | out of thin air | out of scope | out of bounds
    out of range | thin air | falls flat | fell flat | falls short | fell short | fall short | comes up short | falls apart | fall apart | goes nowhere | go nowhere | leads nowhere
    goes off | goes wrong | went wrong | gone wrong | go wrong | goes against | let down | lets down | lets it down | let me down | lost me | lost in | loses me | lost track | loses the thread
    leaves a lot to be desired | leaves much to be desired | leaves something to be desired | to be desired | no good | no sense | no use | no point | no way | not ok | no thanks | no basis | no evidence | no support | no proof
    too much | too many | too little | too few | too long | too short | over the top | all over the place | all over the shop | a stretch | a reach | stretch of | a mess | a joke | a chore | a slog | a drag | a bore
    a bit much | a far cry | far cry from | far from | anything but | nowhere near | less than ideal | less than | leaves me cold | left me cold | leaves me | makes no sense | doesn't add up | don't add up | does not add up | jumping to | jumps to
    jumps the gun | jump to conclusions | jumps around | around the bush | beats around | runs on | run on | drones on | drags on | goes on and on | on and on | rambles on | waffles | waffle | waters down | watered down | word salad
    word soup | wall of text | mouthful | tongue twister | hard to follow | hard to read | hard to understand | hard to believe | hard to see | hard work | difficult to follow | difficult to read | difficult to understand
    impossible to | tough to | not enough | hardly any | barely any | thumbs down | two left feet | for no reason | no reason to | no need for | no need to | without reason | without need | takes liberties | liberties with
    plays fast and loose | puts words | put words | words in | words into | twists | twisted | sugar coats | sugarcoats | glosses over | gloss over | glossed over | brushes over | brushes aside | skates over
    skims over | sweeps under | sweeps aside | leaves out | left out | leave out | leaving out | turns into | mixes up | mixed up | mix up | muddles up | messes up | messed up | mess up | screws up | screwed up | fouls up
    cocked up | blows up | blew up | breaks down | break down | breaks on | breaks when | breaks if | chokes on | trips over | trip over | trips up | gives up | gave up | i gave up | put me off | puts me off | turned off | turn off | rubs me
    sticks out | sore thumb | raises eyebrows | raised my eyebrows | raises questions | begs the question | begs | says who | since when | come on | give me a break | you must be joking | you can't be serious | what the | are you kidding
    wishful thinking | old hat | old news | half baked | half true | half truth | hand waving | hand wavy | handwavy | hit and miss | hit or miss | patchy | cut and paste | copy paste | copy and paste | copied and pasted | one sided | one note
    long winded | wordy | back to front | upside down | wrong way round | wrong way | the other way round | the other way around | other way round | other way around | vice versa | not what | never happened | didn't happen | did not happen | isn't true | no such
    there is no such | could be better | could be clearer | could be improved | could be shorter | could be stronger | could be tighter | could do with | could use | could have been | could've been | can be improved | room for improvement | better off without | would rather | i'd rather | would prefer
    i'd prefer | would be better | would be nicer | would be clearer | would be stronger | would be perfect if | would be nice if | would be good if | would be great if | would be helpful if | would help if | would help to | would have been | would've been | if only | better if | nicer if | clearer if | stronger if | better without | better to
    should have | should've | shouldn't have | should be | should not | shouldn't | needs to | needs work | need to | must be | has to be | have to be | ought to | supposed to | in need of | needs a | needs more | no longer | a pity | a shame | too bad | what a pity
    what a shame | sad to | sorry but | i'm afraid | afraid that | i don't buy | don't buy | hard to swallow | hard pressed | red flag | red herring | dead end | deal breaker | nail in the coffin | last straw | eye roll | rolled my eyes | cringe | made me cringe | makes me cringe
    at odds with | contrary to | in conflict with | conflicts with | clashes with | flies in the face | at face value | taken at | cherry picks | cherry picked | jumps from | no idea where | don't know where | comes from nowhere | where does | where did
    instead of | rather than | not the same | not the case | the opposite | opposite of | quite the opposite | backwards | wrong end | in vain | for nothing | of no | short of | stops short | cut short | cut off | cuts off | breaks off | trails off | peters out | fizzles out
    """

_HEDGE_IDIOMS = """
    not sure | not certain | not so sure | no idea | no clue | can't tell | cannot tell | can't say | cannot say | can't judge | cannot judge | hard to say | hard to tell | hard to judge | don't know | do not know | not in a position | beyond me | above my pay grade
    could be | may be | might be | either way | in two minds | jury is out | jury's out | on the fence | no opinion | no strong opinion | don't mind | neither here nor there | depends on | it depends | remains to be seen | time will tell | who knows | your guess
    haven't checked | have not checked | haven't read | haven't tried | haven't tested | not tested | not checked | have to check | need to check | would need to | would have to | can't verify | cannot verify | couldn't verify | not verified | hard to verify | as far as i know | as far as i can tell
    i think so | if i remember | mixed feelings | so so | take it or leave it | neither good nor bad | not qualified | not an expert | no expert | remains unclear | open question | up for debate | some would say | matter of taste | question of taste | more or less
    """


def _phrases(idioms: str) -> list[tuple[str, ...]]:
    return [tuple(phrase.split()) for line in idioms.splitlines() for phrase in line.split("|") if phrase.strip()]


ROLES: dict[str, list[str]] = {role: words.split() for role, words in _WORDS.items()}
IDIOMS: dict[tuple[str, ...], str] = {
    phrase: role
    for role, idioms in (("praise", _PRAISE_IDIOMS), ("blame", _BLAME_IDIOMS), ("hedge", _HEDGE_IDIOMS))
    for phrase in _phrases(idioms)
}
