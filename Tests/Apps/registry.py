"""The apps' cases, in the order in which they run."""
CASES = []


def case(function):
    CASES.append(function)
    return function
