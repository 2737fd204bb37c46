SURVIVORS: dict[str, str] = {}
