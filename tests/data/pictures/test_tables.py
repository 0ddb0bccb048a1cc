import pytest

from augtree.data.pictures.tables import PictureAt, below, columns_of, numbers_of, read_table, some_missing, source_of
from augtree.errors import DataError


def write(tmp_path, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_some_columns_by_name(tmp_path):
    path = write(tmp_path, '\ufeffa, b,"c,d",\n1, x ,y,\n\n2,"p,q",,\n')
    assert read_table(path, ("b", "a")) == {"b": ("x", "p,q"), "a": ("1", "2")}
    assert read_table(path, ("c,d",)) == {"c,d": ("y", "")}
    assert columns_of(path) == ["a", "b", "c,d", ""]
    assert read_table(write(tmp_path, "l;r\n1;2\n"), ("l", "r"), delimiter=";") == {"l": ("1",), "r": ("2",)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,c\n1,2\n", "must have the column b, got 'a,c'"),
        ("a,b\n1,2\n3\n", "table.csv line 3: must have 2 cells, got 1"),
        ("a,b\n", "must have a line for each picture, got none"),
        ("", "must have the column b, got ''"),
        (b"a,b\n\xff,1\n", "must be a table in UTF-8"),
        ('a,b\n"1,2\n', "must be a table in UTF-8"),
    ],
)
def test_broken_tables(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read_table(write(tmp_path, content), ("b",))


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="must be a table in UTF-8 .*No such file"):
        read_table(tmp_path / "none.csv", ("b",))


def test_whole_numbers(tmp_path):
    assert numbers_of(tmp_path, "y", ("3", "0", "12.0")) == [3, 0, 12]
    for cell in ("-1", "1.5", "", "²"):
        with pytest.raises(DataError, match="picture 2: y must be a whole number, got"):
            numbers_of(tmp_path, "y", ("3", cell))


def test_files_below_folders(tmp_path):
    for name in ("one/A.PNG", "one/deep/b.jpg", "two/c.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = below([tmp_path / "one"])
    assert found == {"a.png": tmp_path / "one" / "A.PNG", "b.jpg": tmp_path / "one" / "deep" / "b.jpg"}
    assert some_missing(tmp_path, ["a.png", "B.jpg"], found, False) == [0, 1]
    assert some_missing(tmp_path, ["x.png", "B.jpg"], found, True) == [1]
    with pytest.raises(
        DataError, match="all 2 pictures of its table, but 1 are missing, the first is x.png; partial"
    ):
        some_missing(tmp_path, ["x.png", "B.jpg"], found, False)
    with pytest.raises(DataError, match="but 1 are missing, the first is x.png$"):
        some_missing(tmp_path, ["x.png"], found, True)


def test_a_stamp_changes_with_the_file(tmp_path):
    picture = PictureAt(write(tmp_path, "one"))
    before = picture.stamp()
    assert picture.stamp() == before
    write(tmp_path, "longer")
    assert picture.stamp() != before
    with picture() as file:
        assert file.read() == b"longer"
    assert "FileNotFoundError" in PictureAt(tmp_path / "none").stamp()


def test_what_is_left_out_is_not_in_the_source(tmp_path):
    assert source_of("x", tmp_path, 3, size=None, partial=False, cameras=2) == {
        "source": "x",
        "root": str(tmp_path),
        "cameras": 2,
        "seed": 3,
    }
