"""Test the list of the tests that `make test` leaves to `make test-all`."""


def test_every_line_of_the_list_is_a_test(lines_without_test: list[str]) -> None:
    assert lines_without_test == []
