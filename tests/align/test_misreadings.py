"""Comments that were read the wrong way round, in several wordings, each beside comments that only look alike."""

from __future__ import annotations

import pytest

from text2grad.align.reading import NO_OPINION, NOT_SURE, Reading, read_comment

BANK = "Turn left at the bank. The library is the second building on the street. It opens at nine."
STREET = "Turn left at the bank. The library is on the right. It opens at nine."
VOTE = "The council met on Wednesday. The vote was on Monday."
SHUT = "We are closed on Wednesday and Monday."
SHOP = "We are open every day. We close at 6 pm on weekdays. You can reach us at info@shop.com."
COST = "It costs $40. Delivery is free."
LETTER = (
    "Dear Ms Hill, we are sorry for the delay. Call us on 555-123-4567 or write to help@shop.com. "
    "We will send your receipt by 4 March."
)
BRIDGE = "The bridge closes on Monday. Repairs cost 3.2 million dollars. The work takes eleven weeks."
PROGRAM = "def sum_all(xs):\n    total = 0\n    for n in xs:\n        total = n\n    return total\n"
INSTALL = "Run the following:\n\nnpm install\n\nThen start the server."
CUSTOMS = "We ship abroad. Customs fees are included in the price. Delivery is free."
OFFICER = "Bob Ray is the CFO of the company. It was founded in 1990."


def labels(answer: str, reading: Reading) -> set[tuple[str, str]]:
    """Return (words, label) of the spans."""
    return {(answer[span.start : span.end], span.label) for span in reading.spans}


def corrected(answer: str, reading: Reading) -> list[tuple[str, str | None]]:
    """Return (words, replacement) of the spans with one."""
    return [(answer[s.start : s.end], s.replacement) for s in reading.spans if s.replacement is not None]


def blames(answer: str, reading: Reading, words: str) -> bool:
    """Whether a span that holds these words is blamed, and none of them praised."""
    own = [span for span in reading.spans if words in answer[span.start : span.end]]
    return bool(own) and all(span.label == "poor" for span in own)


def praises(answer: str, reading: Reading, words: str) -> bool:
    own = [span for span in reading.spans if words in answer[span.start : span.end]]
    return bool(own) and all(span.label == "good" for span in own)


@pytest.mark.parametrize("comment", ["right, not left", "Right, not left!", "It's right, not left.", "right not left"])
@pytest.mark.parametrize("answer", [BANK, STREET])
def test_the_second_of_two_contrasted_words_is_wrong(comment: str, answer: str) -> None:
    assert corrected(answer, read_comment(comment, answer)) == [("left", "right")]


@pytest.mark.parametrize("comment", ["right, not left", "right not left"])
def test_which_of_several_is_contrasted_is_not_guessed(comment: str) -> None:
    answer = "Turn left at the bank. Then turn left at the church and right at the pub."
    reading = read_comment(comment, answer)
    assert not corrected(answer, reading)
    assert not any(span.label == "good" for span in reading.spans)


@pytest.mark.parametrize("comment", ["Clear, not boring.", "Honestly not bad.", "Short, not dull!"])
def test_praise_with_a_negation_stays_praise(comment: str) -> None:
    assert {label for _, label in labels(BANK, read_comment(comment, BANK))} <= {"good"}


@pytest.mark.parametrize(
    "comment",
    [
        "Couldn't be worse",
        "It could hardly be worse.",
        "Could not have been more confusing.",
        "It couldn't be less clear.",
    ],
)
def test_what_cannot_be_worse_is_blamed(comment: str) -> None:
    assert {label for _, label in labels(SHOP, read_comment(comment, SHOP))} == {"poor"}


@pytest.mark.parametrize("comment", ["This can't get any worse.", "It doesn't get worse than this"])
def test_what_cannot_get_worse_is_not_praised(comment: str) -> None:
    assert {label for _, label in labels(SHOP, read_comment(comment, SHOP))} <= {"poor"}


@pytest.mark.parametrize(
    "comment",
    ["Couldn't be better", "It could hardly be clearer.", "Couldn't be more helpful.", "Can't get any better!"],
)
def test_what_cannot_be_better_is_praised(comment: str) -> None:
    assert {label for _, label in labels(SHOP, read_comment(comment, SHOP))} == {"good"}


@pytest.mark.parametrize(
    "comment",
    [
        "Wednesday is correct, Monday isn't.",
        "Wednesday is right, Monday is not",
        "Wednesday is right, Monday is wrong",
        "Wednesday is correct and Monday isn't.",
        "Wednesday is right but Monday isn't",
        "Monday isn't right, Wednesday is.",
        "Monday is wrong, Wednesday isn't.",
    ],
)
@pytest.mark.parametrize("answer", [VOTE, SHUT])
def test_a_verb_without_its_adjective_contrasts(comment: str, answer: str) -> None:
    reading = read_comment(comment, answer)
    assert not any(span.label == "good" and "Monday" in answer[span.start : span.end] for span in reading.spans)
    assert not any(span.label == "poor" and "Wednesday" in answer[span.start : span.end] for span in reading.spans)
    if answer == VOTE:
        assert blames(answer, reading, "Monday")
        assert praises(answer, reading, "Wednesday")


@pytest.mark.parametrize("comment", ["Wednesday is correct, as it is.", "Wednesday and Monday are correct, they are."])
def test_what_is_confirmed_is_not_contrasted(comment: str) -> None:
    assert not any(label == "poor" for _, label in labels(VOTE, read_comment(comment, VOTE)))


@pytest.mark.parametrize(
    "comment", ["Wrong closing time: we close at 5", "The closing time is wrong.", "Wrong closing hour!"]
)
def test_closing_hours_are_no_closing_words(comment: str) -> None:
    reading = read_comment(comment, SHOP)
    assert blames(SHOP, reading, "6 pm")
    assert not blames(SHOP, reading, "info@shop.com")


@pytest.mark.parametrize("comment", ["The closing is weak.", "Weak closing line."])
def test_closing_words_are_still_found(comment: str) -> None:
    assert blames(SHOP, read_comment(comment, SHOP), "info@shop.com")


@pytest.mark.parametrize("comment", ["👍 but delivery costs $5", "delivery costs $5", "But the delivery costs $5."])
def test_a_value_of_another_thing_replaces_nothing(comment: str) -> None:
    reading = read_comment(comment, COST)
    assert ("$40", "$5") not in corrected(COST, reading)
    assert not blames(COST, reading, "$40")


def test_a_clause_on_another_thing_is_not_sure() -> None:
    assert [reason for _, reason in read_comment("delivery costs $5", COST).refused] == [NOT_SURE]


@pytest.mark.parametrize("comment", ["It costs $45.", "The cost is $45."])
def test_a_value_of_the_same_thing_replaces_it(comment: str) -> None:
    assert corrected(COST, read_comment(comment, COST)) == [("$40", "$45")]


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("Remove the phone number.", "555-123-4567"),
        ("Please delete the email address", "help@shop.com"),
        ("Take out the phone number please", "555-123-4567"),
        ("Leave out the apology.", "sorry"),
        ("drop the date", "4 March"),
        ("You should cut the phone number", "555-123-4567"),
        ("The phone number should be removed.", "555-123-4567"),
        ("Omit the e-mail address.", "help@shop.com"),
        ("Nobody asked about a receipt.", "receipt"),
    ],
)
def test_what_should_go_is_blamed_and_not_missing(comment: str, words: str) -> None:
    reading = read_comment(comment, LETTER)
    assert blames(LETTER, reading, words)
    assert reading.omissions == []


@pytest.mark.parametrize("comment", ["Remove the poem.", "Delete the picture of a cat.", "Leave out the raisins."])
def test_what_should_go_and_is_not_there_is_not_missing(comment: str) -> None:
    assert read_comment(comment, LETTER).omissions == []


@pytest.mark.parametrize(
    "comment",
    ["It leaves out the name of the product.", "The product name should not be left out.", "Add the order number."],
)
def test_what_was_left_out_is_missing(comment: str) -> None:
    assert len(read_comment(comment, LETTER).omissions) == 1


@pytest.mark.parametrize(
    "comment",
    [
        "Nice apology, but no one asked about a receipt.",
        "Nice apology, but nobody asked for a receipt.",
        "Good apology, but who asked about a receipt?",
    ],
)
def test_what_nobody_asked_for_is_blamed(comment: str) -> None:
    reading = read_comment(comment, LETTER)
    assert blames(LETTER, reading, "receipt")
    assert praises(LETTER, reading, "sorry")
    assert reading.omissions == []


@pytest.mark.parametrize("comment", ["A receipt is not what was asked.", "The receipt is not what I asked for."])
def test_what_is_not_what_was_asked_is_blamed(comment: str) -> None:
    assert blames(LETTER, read_comment(comment, LETTER), "receipt")


@pytest.mark.parametrize("comment", ["The receipt is what was asked for.", "The receipt is exactly what I asked for."])
def test_what_was_asked_for_is_not_blamed(comment: str) -> None:
    assert not any(label == "poor" for _, label in labels(LETTER, read_comment(comment, LETTER)))


@pytest.mark.parametrize(
    "comment",
    [
        "Monday should be Tuesday and 3.2 should be 2.3",
        "Monday should be Tuesday, and 3.2 should be 2.3.",
        "Monday should be Tuesday, 3.2 should be 2.3",
        "Monday -> Tuesday, 3.2 -> 2.3",
        "Monday -> Tuesday and 3.2 -> 2.3",
    ],
)
def test_two_corrections_in_one_sentence(comment: str) -> None:
    reading = read_comment(comment, BRIDGE)
    assert corrected(BRIDGE, reading) == [("Monday", "Tuesday"), ("3.2", "2.3")]
    assert (reading.omissions, reading.refused) == ([], [])


def test_an_amount_does_not_take_the_place_of_a_word() -> None:
    reading = read_comment("Monday should be Tuesday and the cost should be $4 million", BRIDGE)
    assert ("Monday", "Tuesday") in corrected(BRIDGE, reading)
    assert "cost" not in [words for words, _ in corrected(BRIDGE, reading)]


@pytest.mark.parametrize(
    "comment", ['"Monday" should be "Monday and Tuesday".', "Monday should be Monday and Tuesday."]
)
def test_new_words_with_and_are_one_correction(comment: str) -> None:
    assert len(corrected(BRIDGE, read_comment(comment, BRIDGE))) <= 1


@pytest.mark.parametrize(
    ("comment", "answer", "expected"),
    [
        ("total = n should be total += n", PROGRAM, ("total = n", "total += n")),
        ("npm install -> yarn add", INSTALL, ("npm install", "yarn add")),
        ('"npm" should be "yarn"', INSTALL, ("npm", "yarn")),
        ('"Turn" should be "walk"', BANK, ("Turn", "Walk")),
    ],
)
def test_new_words_keep_the_case_of_the_old(comment: str, answer: str, expected: tuple[str, str]) -> None:
    reading = read_comment(comment, answer)
    assert corrected(answer, reading) == [expected]
    assert (reading.omissions, reading.refused) == ([], [])


@pytest.mark.parametrize(
    ("comment", "missing"),
    [
        ("Misses the 4,000 signatures.", "the 4,000 signatures"),
        ("Skips the detour.", "the detour"),
        ("Omits the 1,200 jobs", "the 1,200 jobs"),
        ("Lacks the name of the engineer.", "the name of the engineer"),
        ("It misses the 4,000 signatures", "the 4,000 signatures"),
    ],
)
def test_what_is_missed_is_missing(comment: str, missing: str) -> None:
    reading = read_comment(comment, BRIDGE)
    assert [omission.text for omission in reading.omissions] == [missing]
    assert reading.spans == []


def test_a_thing_of_a_kind_that_the_answer_has_is_not_missed_for_sure() -> None:
    assert all(omission.confidence < 0.9 for omission in read_comment("Misses the date.", BRIDGE).omissions)


@pytest.mark.parametrize(
    "comment", ["Misses the point.", "Misses the mark completely", "Lacks nothing.", "Lacks clarity."]
)
def test_idioms_of_missing_miss_no_thing(comment: str) -> None:
    assert not any(
        "point" in o.text or "mark" in o.text or "nothing" in o.text for o in read_comment(comment, BRIDGE).omissions
    )


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("Customs fees are NOT included", "Customs fees are included"),
        ("Customs fees aren't included in the price.", "Customs fees are included"),
        ("delivery isn't free", "Delivery is free"),
        ("But the delivery is not free!", "Delivery is free"),
    ],
)
def test_a_denial_of_what_the_answer_says_blames_it(comment: str, words: str) -> None:
    reading = read_comment(comment, CUSTOMS)
    assert blames(CUSTOMS, reading, words)
    assert not blames(CUSTOMS, reading, "We ship abroad")
    assert (reading.omissions, reading.refused) == ([], [])


@pytest.mark.parametrize("comment", ["Delivery isn't free", "Customs fees are not included"])
def test_who_agrees_with_a_denial_blames_nothing(comment: str) -> None:
    answer = "We ship abroad. Customs fees are not included in the price. Delivery isn't free."
    assert not any(label == "poor" for _, label in labels(answer, read_comment(comment, answer)))


@pytest.mark.parametrize("comment", ["The insurance is not mentioned.", "Insurance isn't included."])
def test_what_is_not_there_is_missing_and_not_denied(comment: str) -> None:
    assert not any(label == "good" for _, label in labels(CUSTOMS, read_comment(comment, CUSTOMS)))
    assert not blames(CUSTOMS, read_comment(comment, CUSTOMS), "Delivery is free")


@pytest.mark.parametrize(
    "comment", ["2/10", "1/5", "4 out of 10.", "2 stars", "**", "⭐⭐", "★★☆☆☆", "I'd give it 3/10"]
)
def test_few_points_are_a_bad_verdict(comment: str) -> None:
    assert labels(SHOP, read_comment(comment, SHOP)) == {(SHOP, "poor")}


@pytest.mark.parametrize(
    "comment", ["8/10", "5 stars", "4 out of 5 stars", "10/10!", "⭐⭐⭐⭐⭐", "Rating: 7/10", "90/100"]
)
def test_many_points_are_a_good_verdict(comment: str) -> None:
    assert labels(SHOP, read_comment(comment, SHOP)) == {(SHOP, "good")}


@pytest.mark.parametrize("comment", ["3 out of 5 stars", "5/10", "6/10", "⭐⭐⭐"])
def test_middling_points_are_no_verdict(comment: str) -> None:
    reading = read_comment(comment, SHOP)
    assert (reading.spans, reading.omissions) == ([], [])
    assert [reason for _, reason in reading.refused] == [NOT_SURE]


@pytest.mark.parametrize("comment", ["3/4", "12/10", "24/7"])
def test_other_fractions_are_no_verdict(comment: str) -> None:
    assert (SHOP, "good") not in labels(SHOP, read_comment(comment, SHOP))


def test_a_fraction_is_no_verdict_on_an_answer_with_fractions() -> None:
    answer = "The show starts on 9/10. Doors open at seven."
    assert (answer, "good") not in labels(answer, read_comment("8/10", answer))


@pytest.mark.parametrize("comment", ['Start with "Hello".', 'Begin with "Hello"', 'It should end with "Hello".'])
def test_quoted_words_to_start_with_are_missing(comment: str) -> None:
    reading = read_comment(comment, LETTER)
    assert [omission.text for omission in reading.omissions] == ["Hello"]
    assert (reading.spans, reading.refused) == ([], [])


@pytest.mark.parametrize("comment", ['Starts with "Dear", lovely.', 'I liked that you start with "Dear".'])
def test_quoted_words_that_it_starts_with_are_not_missing(comment: str) -> None:
    assert read_comment(comment, LETTER).omissions == []


@pytest.mark.parametrize("comment", ["Ann Lee is the CFO", "Ann Lee is the CFO.", "The CFO is Ann Lee."])
def test_another_name_for_a_role_replaces_the_name(comment: str) -> None:
    assert corrected(OFFICER, read_comment(comment, OFFICER)) == [("Bob Ray", "Ann Lee")]


@pytest.mark.parametrize("comment", ["Bob Ray is the CFO", "Ann Lee is the mayor", "Ann Lee wrote this well"])
def test_names_of_other_roles_replace_nothing(comment: str) -> None:
    assert corrected(OFFICER, read_comment(comment, OFFICER)) == []


@pytest.mark.parametrize(
    "comment",
    [
        "The last sentence would have been enough.",
        "Just one sentence would have been enough",
        "The last sentence alone would have sufficed.",
        "The first line would be enough",
    ],
)
def test_what_would_have_been_enough_is_not_blamed(comment: str) -> None:
    reading = read_comment(comment, BRIDGE)
    assert reading.spans == []
    assert [reason for _, reason in reading.refused] == [NOT_SURE]


@pytest.mark.parametrize("comment", ["Delete everything after the first sentence.", "Cut all but the first sentence."])
def test_what_should_stay_alone_is_not_blamed(comment: str) -> None:
    assert not blames(BRIDGE, read_comment(comment, BRIDGE), "The bridge closes")


def test_what_is_not_enough_is_blamed() -> None:
    assert blames(BRIDGE, read_comment("The last sentence is not good enough.", BRIDGE), "eleven weeks")


@pytest.mark.parametrize("comment", ["=SUM(A1)", "n/a", "N/A", "-", "?", "#REF!", "...", "none", "null", "No comment."])
def test_a_cell_without_a_comment_is_refused(comment: str) -> None:
    reading = read_comment(comment, SHOP)
    assert (reading.spans, reading.omissions) == ([], [])
    assert [reason for _, reason in reading.refused] == [NO_OPINION]


@pytest.mark.parametrize("comment", ["== instead of >=", "=> is wrong", "None of it is true."])
def test_a_comment_that_starts_like_a_cell_is_a_comment(comment: str) -> None:
    assert NO_OPINION not in [reason for _, reason in read_comment(comment, SHOP).refused]


@pytest.mark.parametrize("comment", ["Remove the phone number and add the order number."])
def test_what_should_come_beside_what_should_go_is_missing(comment: str) -> None:
    reading = read_comment(comment, LETTER)
    assert all("order number" in omission.text for omission in reading.omissions)


@pytest.mark.parametrize("comment", ["Should it remove the phone number?", "Perhaps remove the phone number?"])
def test_who_asks_whether_something_should_go_praises_nothing(comment: str) -> None:
    assert not any(label == "good" for _, label in labels(LETTER, read_comment(comment, LETTER)))


@pytest.mark.parametrize(("comment", "label"), [("👍", "good"), ("+1", "good"), ("-1", "poor"), ("Bad", "poor")])
def test_short_verdicts_are_still_read(comment: str, label: str) -> None:
    assert labels(SHOP, read_comment(comment, SHOP)) == {(SHOP, label)}


TRIP_REPORT = "We left at dawn. The boat was slow. We saw two seals. Then the captain sold us his hat."


@pytest.mark.parametrize(
    "comment",
    ["Lovely until the last sentence.", "Well written up to the last line.", "It was great until the captain came."],
)
def test_praise_that_lasts_until_something_blames_that(comment: str) -> None:
    reading = read_comment(comment, TRIP_REPORT)
    assert blames_only(TRIP_REPORT, reading, "sold us his hat")


def blames_only(answer: str, reading: Reading, words: str) -> bool:
    """Whether the narrowest span that holds these words is blamed."""
    own = [span for span in reading.spans if words in answer[span.start : span.end]]
    return bool(own) and min(own, key=lambda span: span.end - span.start).label == "poor"


@pytest.mark.parametrize("comment", ["Everything but the seals is dull.", "All except the boat was made up."])
def test_what_is_not_named_is_not_guessed(comment: str) -> None:
    assert read_comment(comment, TRIP_REPORT).spans == []


@pytest.mark.parametrize("comment", ["It returns True for odd numbers.", "True and False are the wrong way round."])
def test_values_are_no_praise(comment: str) -> None:
    answer = "def is_even(n):\n    if n % 2 == 1:\n        return True\n    return False"
    assert not any(span.label == "good" for span in read_comment(comment, answer).spans)


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("The size should be 30 x 40 cm.", [("20 x 40 cm", "30 x 40 cm")]),
        ("30 x 40!", [("20 x 40 cm", "30 x 40")]),
        ("The price is off by ten euros.", []),
        ("Replace the plastic with the leather.", [("plastic", "leather")]),
    ],
)
def test_a_dimension_is_one_value_and_a_difference_none(comment: str, expected: list[tuple[str, str]]) -> None:
    answer = "1. Bag: 20 x 40 cm, made of plastic\n2. Price: 30 euros\n3. Colour: red"
    assert corrected(answer, read_comment(comment, answer)) == expected


def test_a_person_who_has_to_go_leaves_no_article_behind() -> None:
    answer = "A fox lived in the wood. Then a hunter shot him. The end was sad."
    assert not corrected(answer, read_comment("The hunter has to go.", answer))


@pytest.mark.parametrize("comment", ["No seals in a report, please.", "Please, no jokes about the captain."])
def test_what_is_forbidden_is_not_missing(comment: str) -> None:
    assert read_comment(comment, TRIP_REPORT).omissions == []


SUMMARY = (
    "The museum reopens on Friday after a fire. Director Eva Lund said that the roof was new. It stayed shut in June "
    "because of a strike. Children cheered at the gate."
)
MUSEUM = (
    "Summarise: The museum reopens on Saturday after a flood. Director Ida Lund said that the roof was new. It stayed "
    "shut in May because the floor had to dry."
)


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("A strike is nowhere to be found in the article.", "strike"),
        ("The source never mentions a strike.", "strike"),
        ("The fire isn't mentioned in the source.", "fire"),
        ("There is nothing about a strike in the article.", "strike"),
        ("I cannot find any strike in the article", "strike"),
        ("Where does the strike come from?", "strike"),
        ("Where did you get the fire from?", "fire"),
        ("Cheering children are not in the source.", "Children cheered"),
    ],
)
def test_what_the_answer_has_and_the_source_has_not_is_blamed(comment: str, words: str) -> None:
    reading = read_comment(comment, SUMMARY, MUSEUM)
    assert blames(SUMMARY, reading, words)
    assert (reading.omissions, reading.refused) == ([], [])


@pytest.mark.parametrize("comment", ["The flood is nowhere to be found.", "It never mentions the wet floor."])
def test_what_the_answer_has_not_is_still_missing(comment: str) -> None:
    assert len(read_comment(comment, SUMMARY, MUSEUM).omissions) == 1


@pytest.mark.parametrize(
    ("comment", "places"),
    [
        ("The day and the reason are wrong.", ["Friday", "because of a strike"]),
        ("Both the month and the director's name are wrong.", ["June", "Eva"]),
        ("Wrong day, wrong month.", ["Friday", "June"]),
        ("You got the day and the month wrong.", ["Friday", "June"]),
        ("The roof and the children are lovely.", ["roof", "Children"]),
        ("The day is wrong and so is the month.", ["Friday", "June"]),
        ("The month is wrong, as is the reason.", ["June", "because of a strike"]),
        ("Wrong: the day, the month.", ["Friday", "June"]),
        ("The first and the last sentence are wrong.", ["reopens", "cheered"]),
    ],
)
def test_each_of_several_things_has_its_own_place(comment: str, places: list[str]) -> None:
    reading = read_comment(comment, SUMMARY, MUSEUM)
    assert len(reading.spans) == len(places)
    for words in places:
        assert sum(words in SUMMARY[span.start : span.end] for span in reading.spans) == 1


@pytest.mark.parametrize("comment", ["The fish and chips are great.", "Fish and chips sound good."])
def test_words_that_the_answer_has_together_are_one_thing(comment: str) -> None:
    answer = "We had fish and chips at the pier. Then it rained. The bus was late."
    assert len(read_comment(comment, answer).spans) <= 1


@pytest.mark.parametrize(
    "comment",
    [
        "Nicely laid out, but riddled with errors.",
        "Full of inaccuracies.",
        "It's nothing but platitudes.",
        "Sloppy phrasing.",
        "Most of this is false.",
        "Half of it is invented.",
        "Hardly anything is correct.",
        "None of it is true.",
        "Nothing adds up.",
    ],
)
def test_verdicts_of_blame_are_about_the_whole(comment: str) -> None:
    assert (SUMMARY, "poor") in labels(SUMMARY, read_comment(comment, SUMMARY, MUSEUM))
    assert not any(label == "good" for _, label in labels(SUMMARY, read_comment("Hardly anything is true.", SUMMARY)))


@pytest.mark.parametrize(
    "comment", ["Nothing is wrong.", "Hardly anything is wrong here.", "Nothing could be clearer."]
)
def test_verdicts_of_few_faults_are_praise(comment: str) -> None:
    assert {label for _, label in labels(SUMMARY, read_comment(comment, SUMMARY, MUSEUM))} == {"good"}


@pytest.mark.parametrize(
    "comment", ["Apart from the roof, nothing is true.", "Except for the roof hardly anything is right"]
)
def test_what_is_excepted_from_little_is_praised(comment: str) -> None:
    reading = read_comment(comment, SUMMARY, MUSEUM)
    assert (SUMMARY, "poor") in labels(SUMMARY, reading)
    assert any(label == "good" and "roof" in words for words, label in labels(SUMMARY, reading))


@pytest.mark.parametrize(
    "comment",
    ["A synopsis was not requested.", "The plot was never asked for.", "No need to describe the storyline."],
)
def test_the_plot_is_the_sentence_that_tells_it(comment: str) -> None:
    answer = (
        "Emma was written by Jane Austen. It tells the story of a young woman who likes to match couples. It has wit."
    )
    reading = read_comment(comment, answer, "Who wrote Emma?")
    assert blames(answer, reading, "young woman who likes to match couples")
    assert reading.omissions == []


APPLICATION = (
    "I would like to work at your bakery. I baked bread for two years at the mill. My hands are quick. Call me."
)


@pytest.mark.parametrize(
    ("comment", "missing"),
    [
        ("Mention a concrete success.", "a concrete success"),
        ("Please quote a clear recommendation.", "a clear recommendation"),
        ("Describe one great cake.", "one great cake"),
        ("Also name a referee.", "a referee"),
    ],
)
def test_a_request_to_say_something_is_a_lack_and_no_praise(comment: str, missing: str) -> None:
    reading = read_comment(comment, APPLICATION)
    assert [omission.text for omission in reading.omissions] == [missing]
    assert reading.spans == []


@pytest.mark.parametrize("comment", ["Mentions a clear wish, good.", "Describes the work well."])
def test_who_reports_that_something_is_said_asks_for_nothing(comment: str) -> None:
    assert read_comment(comment, APPLICATION).omissions == []


@pytest.mark.parametrize("comment", ["Put the bread first.", "Move the mill further up.", "Bring the mill to the top."])
def test_what_should_be_moved_is_there_and_blamed(comment: str) -> None:
    reading = read_comment(comment, APPLICATION)
    assert blames(APPLICATION, reading, "bread" if "bread" in comment else "mill")
    assert (reading.omissions, reading.refused) == ([], [])


@pytest.mark.parametrize(
    ("comment", "label"),
    [
        ("Neither the bakery nor the mill is right.", "poor"),
        ("Neither the bakery nor the mill seems correct.", "poor"),
        ("Neither the bakery nor the mill is wrong.", "good"),
    ],
)
def test_neither_turns_what_is_said(comment: str, label: str) -> None:
    assert {own for _, own in labels(APPLICATION, read_comment(comment, APPLICATION))} == {label}


@pytest.mark.parametrize(
    "comment",
    ["You might have left out the hands.", "The mill could have been great, but you should have left the hands out."],
)
def test_what_could_have_been_left_out_is_blamed(comment: str) -> None:
    reading = read_comment(comment, APPLICATION)
    assert blames(APPLICATION, reading, "hands")
    assert reading.omissions == []


@pytest.mark.parametrize(
    "comment", ["Too many buzzwords.", "It makes several mistakes.", "Four details are wrong.", "That's clichéd."]
)
def test_many_faults_are_faults_of_the_whole(comment: str) -> None:
    assert labels(APPLICATION, read_comment(comment, APPLICATION)) == {(APPLICATION, "poor")}


@pytest.mark.parametrize(
    ("comment", "places"),
    [
        ("2 and 4 are nonsense.", ["Knead it badly.", "Eat it raw."]),
        ("3 is absurd.", ["Let it rest on the floor."]),
        ("#1 is great", ["Mix flour and water."]),
    ],
)
def test_bare_numbers_are_items_of_a_numbered_list(comment: str, places: list[str]) -> None:
    answer = "1. Mix flour and water.\n2. Knead it badly.\n3. Let it rest on the floor.\n4. Eat it raw."
    assert [words for words, _ in sorted(labels(answer, read_comment(comment, answer)))] == sorted(places)


def test_a_bare_number_that_the_answer_has_is_no_item() -> None:
    answer = "1. Use 3 eggs.\n2. Whisk them.\n3. Bake."
    assert "Bake." not in {words for words, _ in labels(answer, read_comment("3 is too many.", answer))}


@pytest.mark.parametrize(
    "comment",
    ["Everything except the mill is wrong.", "All of it apart from the bread is dull.", "Anything except me is bad."],
)
def test_everything_is_not_praised_where_all_but_one_is_bad(comment: str) -> None:
    assert not any(label == "good" for _, label in labels(APPLICATION, read_comment(comment, APPLICATION)))


@pytest.mark.parametrize("comment", ["Everything is fine except the mill.", "All good except for the mill."])
def test_an_exception_from_praise_is_still_blamed(comment: str) -> None:
    reading = read_comment(comment, APPLICATION)
    assert blames_only(APPLICATION, reading, "mill")
    assert any(label == "good" for _, label in labels(APPLICATION, reading))


@pytest.mark.parametrize(
    "comment",
    ["The mill should be the opening.", "The bread should be the conclusion.", "The bakery should be the title."],
)
def test_where_something_should_be_is_no_wording(comment: str) -> None:
    assert corrected(APPLICATION, read_comment(comment, APPLICATION)) == []


@pytest.mark.parametrize("comment", ["Should be warmer.", "Could be a bit livelier.", "It might have been shorter."])
def test_what_could_be_more_so_is_blamed(comment: str) -> None:
    assert labels(APPLICATION, read_comment(comment, APPLICATION)) == {(APPLICATION, "poor")}


@pytest.mark.parametrize(
    "comment",
    ["I doubt that the roof was new.", "I seriously doubt the new roof.", "We couldn't confirm the new roof."],
)
def test_what_is_doubted_is_blamed(comment: str) -> None:
    assert blames(SUMMARY, read_comment(comment, SUMMARY, MUSEUM), "roof was new")


@pytest.mark.parametrize("comment", ["I doubt anyone could do it better.", "I doubt that there is a better one."])
def test_who_doubts_that_there_is_better_blames_nothing(comment: str) -> None:
    assert not any(label == "poor" for _, label in labels(SUMMARY, read_comment(comment, SUMMARY, MUSEUM)))


@pytest.mark.parametrize("comment", ["Short, but full of wit.", "Brief, but full of good ideas."])
def test_what_is_full_of_good_things_is_praised(comment: str) -> None:
    assert {label for _, label in labels(APPLICATION, read_comment(comment, APPLICATION))} == {"good"}


@pytest.mark.parametrize("comment", ["None of the days is right.", "None of the months is correct."])
def test_none_of_several_is_blamed_and_not_the_whole(comment: str) -> None:
    reading = read_comment(comment, VOTE)
    assert not any(label == "good" or words == VOTE for words, label in labels(VOTE, reading))


@pytest.mark.parametrize("comment", ["Nothing here is confusing.", "Hardly anything is missing."])
def test_little_to_complain_of_is_praise(comment: str) -> None:
    assert {label for _, label in labels(APPLICATION, read_comment(comment, APPLICATION))} == {"good"}


@pytest.mark.parametrize(
    "comment", ["The mill should be the last sentence.", "The bakery should be the very first thing you write."]
)
def test_the_place_where_something_should_be_is_no_wording(comment: str) -> None:
    assert corrected(APPLICATION, read_comment(comment, APPLICATION)) == []


def test_an_item_named_by_its_number_does_not_lose_the_number_alone() -> None:
    answer = "1. Mix flour and water.\n2. Knead it badly.\n3. Let it rest on the floor."
    reading = read_comment("2 should be removed.", answer)
    assert ("2.", "") not in [(words.strip(), new) for words, new in corrected(answer, reading)]
    assert blames(answer, reading, "Knead it badly.")


@pytest.mark.parametrize("comment", ["State the price.", "Show the price."])
def test_a_thing_of_a_kind_that_the_answer_has_is_not_missing(comment: str) -> None:
    assert read_comment(comment, COST).omissions == []


def test_each_of_several_excepted_things_has_its_own_place() -> None:
    reading = read_comment("Good summary apart from the day and the month.", SUMMARY, MUSEUM)
    assert all(blames_only(SUMMARY, reading, words) for words in ("Friday", "June"))
    assert (SUMMARY, "good") in labels(SUMMARY, reading)
