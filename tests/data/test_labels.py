from augtree.data.labels import in_order, matrix, numbered


def test_whole_numbers_are_sorted_as_numbers_and_anything_else_as_text():
    assert in_order(["10", "9", "-1", "9"]) == ("-1", "9", "10")
    assert in_order(["10", "9", "a"]) == ("10", "9", "a")
    assert in_order(["10", "9", ""]) == ("", "10", "9")


def test_names_become_numbers_and_rows():
    assert numbered(["b", "a", "b"], ("a", "b")).tolist() == [1, 0, 1]
    assert matrix([["b"], [], ["a", "b"]], ("a", "b")).tolist() == [[0, 1], [0, 0], [1, 1]]
