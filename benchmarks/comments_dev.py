"""Comments on answers of our own, for tests and for tuning: never reported as a result.

Each comment: (comment, [clause, ...]); a clause: (words of the comment, stance, spans, what is missing). Spans are verbatim
parts of the answer; WHOLE is the whole answer and REFUSED a comment that fits nothing in it.
"""

from __future__ import annotations

from typing import NamedTuple

WHOLE, REFUSED = "whole", "refused"


class DevAnswer(NamedTuple):
    """An answer with its comments."""

    kind: str
    prompt: str
    completion: str
    comments: list[tuple[str, list[tuple[str, str, list[str] | str, str | None]]]]


ANSWERS = [
    DevAnswer(
        "summary",
        "Summarise: The council of Harwick voted on Tuesday to close the old swimming pool on Mill Lane. Repairs would have "
        "cost two million pounds. A petition with 3,400 names had asked to keep it open. The site may become a park.",
        "The council of Harwick decided on Thursday to close the old pool on Mill Lane. Repairs would have cost three million "
        "pounds. It is the worst decision in the history of the town.",
        [
            ("The last sentence is exaggerated.", [("The last sentence is exaggerated", "poor", ["It is the worst decision in the history of the town."], None)]),
            ("The vote was on Tuesday, not Thursday.", [("The vote was on Tuesday, not Thursday", "poor", ["Thursday"], None)]),
            ("It forgot to mention the petition.", [("It forgot to mention the petition", "poor", [], "the petition")]),
            ("Good that it names the street, but the cost of the repairs is wrong.", [("Good that it names the street", "good", ["Mill Lane"], None), ("but the cost of the repairs is wrong", "poor", ["three million pounds"], None)]),
            ("The recipe needs more garlic.", [("The recipe needs more garlic", "poor", REFUSED, None)]),
            ("Where does the part about the worst decision come from? The article says nothing like it.", [("Where does the part about the worst decision come from? The article says nothing like it", "poor", ["the worst decision in the history of the town"], None)]),
        ],
    ),
    DevAnswer(
        "summary",
        "Summarise: Marine biologists tracked 40 sea turtles off Cyprus for six years. Most returned to the beach of their birth. "
        "The study was paid for by the university of Leeds.",
        "Scientists followed 60 sea turtles near Cyprus over six years. Most of them came back to the beach where they were "
        "born. The work was funded by Leeds University, which is very proud of it.",
        [
            ("The number of turtles is off.", [("The number of turtles is off", "poor", ["60"], None)]),
            ("I like the second sentence. The bit about being proud is invented.", [("I like the second sentence", "good", ["Most of them came back to the beach where they were born."], None), ("The bit about being proud is invented", "poor", ["which is very proud of it"], None)]),
            ("Great summary!", [("Great summary", "good", WHOLE, None)]),
            ('"very proud" is not in the source.', [('"very proud" is not in the source', "poor", ["very proud"], None)]),
            ("No mention of how the turtles were tagged.", [("No mention of how the turtles were tagged", "poor", [], "how the turtles were tagged")]),
            ("It should also say who funded the work.", [("It should also say who funded the work", "poor", REFUSED, None)]),
        ],
    ),
    DevAnswer(
        "answer",
        "Why is the sky blue?",
        "Sunlight contains all colours. Air molecules scatter short wavelengths more strongly than long ones, which is called "
        "Mie scattering. Blue light is scattered about four times more than red light. That is why the sky looks blue, and why "
        "sunsets are red. I hope this helps, my friend!",
        [
            ("It's Rayleigh scattering, not Mie.", [("It's Rayleigh scattering, not Mie", "poor", ["Mie"], None)]),
            ("The ending is too chummy.", [("The ending is too chummy", "poor", ["I hope this helps, my friend!"], None)]),
            ("Nice explanation of why sunsets are red.", [("Nice explanation of why sunsets are red", "good", ["why sunsets are red"], None)]),
            ("The first sentence is correct, however the name of the effect is wrong.", [("The first sentence is correct", "good", ["Sunlight contains all colours."], None), ("however the name of the effect is wrong", "poor", ["Mie scattering"], None)]),
            ("Too long.", [("Too long", "poor", WHOLE, None)]),
            ("Not sure whether four times is right.", [("Not sure whether four times is right", "unsure", ["four times"], None)]),
        ],
    ),
    DevAnswer(
        "answer",
        "What should I see in Lisbon in one day?",
        "Start in the Alfama district, the oldest part of the city.\n\n- Ride tram 28 through the narrow streets.\n- Visit the castle "
        "of São Jorge, which costs 50 euros.\n- Eat a pastel de nata in Belém.\n\nIn the evening, listen to fado. Avoid the metro, it is dangerous.",
        [
            ("The second bullet is wrong about the price.", [("The second bullet is wrong about the price", "poor", ["50 euros"], None)]),
            ("The warning about the metro is unfounded.", [("The warning about the metro is unfounded", "poor", ["Avoid the metro, it is dangerous."], None)]),
            ("Love the third bullet point.", [("Love the third bullet point", "good", ["Eat a pastel de nata in Belém."], None)]),
            ("It would be good if it said something about opening hours.", [("It would be good if it said something about opening hours", "poor", [], "opening hours")]),
            ("The tram tip is great but the metro advice is nonsense.", [("The tram tip is great", "good", ["Ride tram 28 through the narrow streets."], None), ("but the metro advice is nonsense", "poor", ["Avoid the metro, it is dangerous."], None)]),
        ],
    ),
    DevAnswer(
        "program",
        "Write a function that returns the factorial of n.",
        "def factorial(n):\n    x = 1\n    for i in range(1, n):\n        x *= i\n    return x\n",
        [
            ("The code fails to handle negative inputs.", [("The code fails to handle negative inputs", "poor", ["range(1, n)"], None)]),
            ("The loop is fine, but the return value is off by one.", [("The loop is fine", "good", ["for i in range(1, n):\n        x *= i"], None), ("but the return value is off by one", "poor", ["x"], None)]),
            ("The range is off by one.", [("The range is off by one", "poor", ["range(1, n)"], None)]),
            ("No docstring.", [("No docstring", "poor", [], "docstring")]),
            ("Works perfectly for small numbers.", [("Works perfectly for small numbers", "good", WHOLE, None)]),
            ("x is a terrible variable name.", [("x is a terrible variable name", "poor", ["x"], None)]),
        ],
    ),
    DevAnswer(
        "program",
        "Write a function that returns the average of a list.",
        "def average(values):\n    total = 0\n    for value in values:\n        total += value\n    return total / len(values)\n",
        [
            ("Breaks on an empty list.", [("Breaks on an empty list", "poor", ["total / len(values)"], None)]),
            ("Clear variable names, I'd keep them.", [("Clear variable names, I'd keep them", "good", WHOLE, None)]),
            ("Line 4 could be sum().", [("Line 4 could be sum()", "poor", ["total += value"], None)]),
            ("It divides by zero when there is nothing in the list.", [("It divides by zero when there is nothing in the list", "poor", ["total / len(values)"], None)]),
        ],
    ),
    DevAnswer(
        "program",
        "Write a program that reads numbers until the user types stop.",
        "def read_numbers():\n    numbers = []\n    while True:\n        text = input()\n        if text == 'stop':\n            break\n        "
        "numbers.append(int(text))\n    print(numbers)\n",
        [
            ("It prints the list instead of returning it.", [("It prints the list instead of returning it", "poor", ["print(numbers)"], None)]),
            ("Crashes for input that is not a number.", [("Crashes for input that is not a number", "poor", ["int(text)"], None)]),
            ("The comparison should ignore upper case.", [("The comparison should ignore upper case", "poor", ["text == 'stop'"], None)]),
            ("The while loop is good.", [("The while loop is good", "good", ["while True:\n        text = input()\n        if text == 'stop':\n            break\n        numbers.append(int(text))"], None)]),
        ],
    ),
    DevAnswer(
        "program",
        "Write a function that tells whether a word is a palindrome.",
        "def is_palindrome(word):\n    left, right = 0, len(word) - 1\n    while left < right:\n        if word[left] != word[right]:\n"
        "            return False\n        left += 1\n    return True\n",
        [
            ("right is never decremented, so the result is wrong.", [("right is never decremented, so the result is wrong", "poor", ["left += 1"], None)]),
            ("The early return is nice.", [("The early return is nice", "good", ["return False"], None)]),
            ("Case is not ignored.", [("Case is not ignored", "poor", ["word[left] != word[right]"], None)]),
        ],
    ),
    DevAnswer(
        "letter",
        "Write an e-mail that moves a meeting.",
        "Subject: Meeting\n\nHey Dr. Osei,\n\nI am writing to move our meeting from Monday to Wednesday at 3 pm. I was too lazy to "
        "prepare. Please tell me whether the new time suits you.\n\nKind regards,\nTom Baker",
        [
            ("The subject line is too vague.", [("The subject line is too vague", "poor", ["Meeting"], None)]),
            ("The greeting is too casual for a doctor.", [("The greeting is too casual for a doctor", "poor", ["Hey Dr. Osei,"], None)]),
            ("The sign-off is perfect.", [("The sign-off is perfect", "good", ["Kind regards,\nTom Baker"], None)]),
            ("Don't say that you were lazy.", [("Don't say that you were lazy", "poor", ["I was too lazy to prepare."], None)]),
            ("It never apologises.", [("It never apologises", "poor", [], "apologises")]),
            ("Polite and to the point.", [("Polite and to the point", "good", WHOLE, None)]),
            ("The time should be 4 pm.", [("The time should be 4 pm", "poor", ["3 pm"], None)]),
        ],
    ),
    DevAnswer(
        "letter",
        "Write a letter of complaint about a late parcel.",
        "Dear Sir or Madam,\n\nMy parcel was due on 2 March and has still not arrived. I have called your office four times and "
        "nobody could help me. You people are useless.\n\nI expect a full refund within ten days.\n\nYours faithfully,\nAnn Miller",
        [
            ("The last sentence of the first paragraph is rude.", [("The last sentence of the first paragraph is rude", "poor", ["You people are useless."], None)]),
            ("Clear demand at the end, well done.", [("Clear demand at the end, well done", "good", ["I expect a full refund within ten days."], None)]),
            ("Where is the order number?", [("Where is the order number?", "poor", [], "the order number")]),
            ("The insult has to go.", [("The insult has to go", "poor", ["You people are useless."], None)]),
            ("The second paragraph is firm but fair.", [("The second paragraph is firm but fair", "good", ["I expect a full refund within ten days."], None)]),
        ],
    ),
    DevAnswer(
        "letter",
        "Thank grandma for a present.",
        "Dear Grandma,\n\nThank you so much for the lovely scarf! I wear it every day. My cat likes it even more than I do. We will "
        "visit you in July.\n\nLove,\nMia",
        [
            ("The line about the cat is adorable.", [("The line about the cat is adorable", "good", ["My cat likes it even more than I do."], None)]),
            ("They visit in August.", [("They visit in August", "poor", ["July"], None)]),
            ("Sweet letter.", [("Sweet letter", "good", WHOLE, None)]),
            ("It does not say thank you.", [("It does not say thank you", "poor", REFUSED, None)]),
        ],
    ),
    DevAnswer(
        "recipe",
        "How do I make pancakes?",
        "Pancakes\n\nIngredients:\n- 200 g flour\n- 2 eggs\n- 300 ml milk\n- 5 tablespoons salt\n\nMethod:\n1. Whisk everything in a bowl.\n"
        "2. Let the batter rest for 20 minutes.\n3. Fry in a hot pan for ten minutes per side.\n4. Serve with maple syrup.",
        [
            ("The amount of salt is crazy.", [("The amount of salt is crazy", "poor", ["5 tablespoons"], None)]),
            ("Step 3 takes far too long.", [("Step 3 takes far too long", "poor", ["Fry in a hot pan for ten minutes per side."], None)]),
            ("Resting the batter is a good idea.", [("Resting the batter is a good idea", "good", ["Let the batter rest for 20 minutes."], None)]),
            ("The third ingredient should be buttermilk.", [("The third ingredient should be buttermilk", "poor", ["300 ml milk"], None)]),
            ("The title is boring.", [("The title is boring", "poor", ["Pancakes"], None)]),
            ("There is no butter for the pan.", [("There is no butter for the pan", "poor", [], "butter for the pan")]),
            ("Maple syrup is the right choice, but the salt is way off.", [("Maple syrup is the right choice", "good", ["maple syrup"], None), ("but the salt is way off", "poor", ["5 tablespoons salt"], None)]),
        ],
    ),
    DevAnswer(
        "recipe",
        "How do I roast a chicken?",
        "Heat the oven to 90 °C. Rub the chicken with oil, salt and lemon. Roast it for 80 minutes, until the juices run clear. Wash "
        "the raw chicken under the tap before that. Let it rest for ten minutes.",
        [
            ("The oven temperature is much too low.", [("The oven temperature is much too low", "poor", ["90 °C"], None)]),
            ("Washing raw chicken spreads germs.", [("Washing raw chicken spreads germs", "poor", ["Wash the raw chicken under the tap before that."], None)]),
            ("The lemon is a nice touch.", [("The lemon is a nice touch", "good", ["lemon"], None)]),
            ("How many people does it serve?", [("How many people does it serve?", "poor", [], "How many people does it serve")]),
            ("It should mention letting the meat rest.", [("It should mention letting the meat rest", "poor", REFUSED, None)]),
        ],
    ),
    DevAnswer(
        "answer",
        "Who wrote Frankenstein, and when?",
        "Frankenstein was written by Mary Shelley, the wife of the poet Lord Byron. She began it in 1816 by Lake Geneva, during a "
        "rainy summer. The first edition came out anonymously in 1918.",
        [
            ("Her husband was Percy Shelley.", [("Her husband was Percy Shelley", "poor", ["Lord Byron"], None)]),
            ("The year of the first edition is a typo.", [("The year of the first edition is a typo", "poor", ["1918"], None)]),
            ("The rainy summer is a lovely detail.", [("The rainy summer is a lovely detail", "good", ["during a rainy summer"], None)]),
            ("Mary Shelley is right; the poet is not.", [("Mary Shelley is right", "good", ["Mary Shelley"], None), ("the poet is not", "poor", ["the poet Lord Byron"], None)]),
            ("The opening line answers the question directly, which I like.", [("The opening line answers the question directly, which I like", "good", ["Frankenstein was written by Mary Shelley, the wife of the poet Lord Byron."], None)]),
        ],
    ),
    DevAnswer(
        "answer",
        "How do vaccines work?",
        "A vaccine shows the immune system a harmless piece of a germ. The body then makes antibodies and memory cells. If the real germ "
        "comes, the body reacts at once. For example, the measles vaccine protects nearly everyone for life. Vaccines never have side effects.",
        [
            ("The example is well chosen.", [("The example is well chosen", "good", ["For example, the measles vaccine protects nearly everyone for life."], None)]),
            ("Claiming that there are no side effects is false.", [("Claiming that there are no side effects is false", "poor", ["Vaccines never have side effects."], None)]),
            ("Memory cells are explained too briefly.", [("Memory cells are explained too briefly", "poor", ["memory cells"], None)]),
            ("Nothing to complain about in the first three sentences.", [("Nothing to complain about in the first three sentences", "good", ["A vaccine shows the immune system a harmless piece of a germ. The body then makes antibodies and memory cells. If the real germ comes, the body reacts at once."], None)]),
            ("It leaves out mRNA vaccines.", [("It leaves out mRNA vaccines", "poor", [], "mRNA vaccines")]),
        ],
    ),
    DevAnswer(
        "program",
        "Write a function that counts the words of a text.",
        "Here is the function:\n\n```python\ndef count_words(text):\n    counts = {}\n    for word in text.split(' '):\n        if word in counts:\n            "
        "counts[word] += 1\n        else:\n            counts[word] = 1\n    return counts\n```\n\nIt returns a dictionary.",
        [
            ("It doesn't handle punctuation.", [("It doesn't handle punctuation", "poor", ["text.split(' ')"], None)]),
            ("The else branch is correct.", [("The else branch is correct", "good", ["counts[word] = 1"], None)]),
            ("Splitting on a single space breaks on double spaces.", [("Splitting on a single space breaks on double spaces", "poor", ["text.split(' ')"], None)]),
            ("The sentence after the code is superfluous.", [("The sentence after the code is superfluous", "poor", ["It returns a dictionary."], None)]),
        ],
    ),
]  # fmt: skip
