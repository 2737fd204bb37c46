"""stub"""


def compare_on_questions(device, quick): ...
