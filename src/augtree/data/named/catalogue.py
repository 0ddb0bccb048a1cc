"""The sets that have a name: what each is, who gives it out, and which files it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from augtree.errors import DataError


@dataclass(frozen=True)
class Remote:
    """A file with an open, direct link."""

    path: str
    """Where it goes, below the root."""
    url: str
    md5: str | None = None
    """As published; None where nobody publishes one."""
    optional: bool = False
    """Whether the set can be read without it."""


@dataclass(frozen=True)
class Named:
    """A set by its name."""

    name: str
    about: str
    page: str
    licence: str
    folders: tuple[str, ...]
    """Where it may lie below the root, the likeliest first."""
    marks: tuple[str, ...]
    """Files of which one shows that a folder holds the set; patterns are allowed."""
    expected: str
    """What there must be, in words."""
    remotes: tuple[Remote, ...] = ()
    """What `download` fetches; nothing where the publisher asks for an account or an agreement."""

    def folder(self, root: Path) -> Path | None:
        """The folder that holds the set: below the root, or the root itself if it is called so."""
        folders = [root / folder for folder in self.folders]
        own = {Path(folder).name.lower() for folder in self.folders} - {"", "raw", "tu"}
        if root.name.lower() in own:
            folders.append(root)
        return next((folder for folder in folders if any(holds(folder, mark) for mark in self.marks)), None)

    def missing(self, place: Path, what: str) -> DataError:
        """The error for files that are not there."""
        how = "with download=True (--download) it is fetched" if self.remotes else "it must be fetched by hand"
        return DataError(f"{place}: must have {what}. {self.name} is {self.expected}, from {self.page}; {how}")

    def found(self, root: Path) -> Path:
        """The folder that holds the set, or the error that says what is missing."""
        folder = self.folder(root)
        if folder is None:
            below = " or ".join(name or "." for name in self.folders[:3])
            raise self.missing(root, f"{' or '.join(self.marks)} (below {below})")
        return folder


def holds(folder: Path, pattern: str) -> bool:
    """Whether a folder has such a file."""
    if not any(sign in pattern for sign in "*?["):
        return (folder / pattern).exists()
    return next(folder.glob(pattern), None) is not None


TORONTO = "https://www.cs.toronto.edu/~kriz"
IDX_FILES = (
    *("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    *("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)
TU_PAGE = "https://chrsmrrs.github.io/datasets/"
NO_LICENCE = "none is stated; cite the authors"
SEE_PAGE = "see its page"


def idx_remotes(folder: str, base: str, sums: str) -> tuple[Remote, ...]:
    """The four packed files of a set in idx form; `sums` are their published MD5."""
    pairs = zip(IDX_FILES, sums.split(), strict=True)
    return tuple(Remote(f"{folder}/{name}.gz", f"{base}/{name}.gz", md5) for name, md5 in pairs)


def tu_set(name: str, about: str) -> Named:
    """A graph set of the TU collection."""
    return Named(
        name=name,
        about=about,
        page=TU_PAGE,
        licence=NO_LICENCE,
        folders=("tu", "", f"tu/{name}", name, f"tu/{name}/raw", f"{name}/raw"),
        marks=(f"{name}.zip", f"{name}_A.txt"),
        expected=f"{name}.zip, or {name}/ with {name}_A.txt, {name}_graph_indicator.txt, {name}_graph_labels.txt ...",
        remotes=(Remote(f"tu/{name}.zip", f"https://www.chrsmrrs.com/graphkerneldatasets/{name}.zip"),),
    )


SETS = (
    Named(
        name="digits",
        about="1,797 handwritten digits, 8x8 grey; comes with scikit-learn",
        page="https://scikit-learn.org/stable/datasets/toy_dataset.html",
        licence=SEE_PAGE,
        folders=(),
        marks=(),
        expected="a part of scikit-learn",
    ),
    Named(
        name="cifar10",
        about="60,000 pictures 32x32 of 10 classes",
        page=f"{TORONTO}/cifar.html",
        licence=NO_LICENCE,
        folders=("cifar-10-batches-bin", ""),
        marks=("test_batch.bin", "cifar-10-binary.tar.gz"),
        expected="cifar-10-batches-bin/ with data_batch_1.bin to data_batch_5.bin, test_batch.bin and "
        "batches.meta.txt, or cifar-10-binary.tar.gz: the binary version",
        remotes=(
            Remote("cifar-10-binary.tar.gz", f"{TORONTO}/cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),
        ),
    ),
    Named(
        name="cifar100",
        about="60,000 pictures 32x32 of 100 classes in 20 coarse ones",
        page=f"{TORONTO}/cifar.html",
        licence=NO_LICENCE,
        folders=("cifar-100-binary", ""),
        marks=("test.bin", "cifar-100-binary.tar.gz"),
        expected="cifar-100-binary/ with train.bin, test.bin, fine_label_names.txt and coarse_label_names.txt, "
        "or cifar-100-binary.tar.gz: the binary version",
        remotes=(
            Remote(
                "cifar-100-binary.tar.gz", f"{TORONTO}/cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"
            ),
        ),
    ),
    Named(
        name="svhn",
        about="99,289 house numbers 32x32, and 531,131 easier ones",
        page="http://ufldl.stanford.edu/housenumbers/",
        licence="for non-commercial use only",
        folders=("svhn", "SVHN", ""),
        marks=("test_32x32.mat",),
        expected="train_32x32.mat and test_32x32.mat (and extra_32x32.mat): the cropped digits",
        remotes=tuple(
            Remote(
                f"svhn/{part}_32x32.mat", f"http://ufldl.stanford.edu/housenumbers/{part}_32x32.mat", md5, optional
            )
            for part, md5, optional in (
                ("train", "e26dedcc434d2e4c54c9b2d4a06d8373", False),
                ("test", "eb5a983be6a315427106f1b164d9cef3", False),
                ("extra", "a93ce644f1a588dc4d68dda5feec44a7", True),
            )
        ),
    ),
    Named(
        name="mnist",
        about="70,000 handwritten digits, 28x28 grey",
        page="http://yann.lecun.com/exdb/mnist/",
        licence=SEE_PAGE,
        folders=("mnist", "MNIST/raw", "MNIST"),
        marks=("t10k-images-idx3-ubyte", "t10k-images-idx3-ubyte.gz", "t10k-images.idx3-ubyte"),
        expected=f"{', '.join(IDX_FILES)}, each packed (.gz) or not",
        remotes=idx_remotes(
            "mnist",
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "f68b3c2dcbeaaa9fbdd348bbdeb94873 d53e105ee54ea40749a09fcbcd1e9432 "
            "9fb629c4189551a2d022fa330f9573f3 ec29112dd5afa0611ce80d1b7f02629c",
        ),
    ),
    Named(
        name="fashion-mnist",
        about="70,000 pieces of clothing, 28x28 grey",
        page="https://github.com/zalandoresearch/fashion-mnist",
        licence="MIT",
        folders=("fashion-mnist", "FashionMNIST/raw", "FashionMNIST"),
        marks=("t10k-images-idx3-ubyte", "t10k-images-idx3-ubyte.gz", "t10k-images.idx3-ubyte"),
        expected=f"{', '.join(IDX_FILES)}, each packed (.gz) or not",
        remotes=idx_remotes(
            "fashion-mnist",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d 25c81989df183df01b3e8a0aad5dffbe "
            "bef4ecab320f06d8554ea6380940ec79 bb300cfdad3c16e7a12a480ee83cd310",
        ),
    ),
    Named(
        name="iwildcam",
        about="203,029 camera-trap pictures of 182 species (WILDS)",
        page="https://wilds.stanford.edu/datasets/#iwildcam",
        licence="CDLA-Permissive-1.0",
        folders=("iwildcam_v2.0", "iwildcam", "wilds/iwildcam_v2.0"),
        marks=("metadata.csv",),
        expected="iwildcam_v2.0/ with metadata.csv, categories.csv and the pictures in train/",
    ),
    Named(
        name="messidor2",
        about="1,744 graded eye fundus pictures, France",
        page="https://www.adcis.net/en/third-party/messidor2/ (pictures) and "
        "https://www.kaggle.com/datasets/google-brain/messidor2-dr-grades (grades)",
        licence="by registration with ADCIS, for research; see its pages",
        folders=("messidor2", "messidor-2", "Messidor-2"),
        marks=("messidor_data.csv",),
        expected="messidor2/ with messidor_data.csv, the pictures in IMAGES/, and messidor-2.csv (which eyes are "
        "one patient's)",
    ),
    Named(
        name="aptos2019",
        about="3,662 graded eye fundus pictures, India",
        page="https://www.kaggle.com/competitions/aptos2019-blindness-detection/data",
        licence="the rules of the competition, see its page",
        folders=("aptos2019", "aptos2019-blindness-detection"),
        marks=("train.csv",),
        expected="aptos2019/ with train.csv and the pictures in train_images/",
    ),
    Named(
        name="jinchi",
        about="9,939 eye fundus pictures with Davis grades, Japan",
        page="https://figshare.com/articles/figure/Davis_Grading_of_One_and_Concatenated_Figures/4879853/1",
        licence=SEE_PAGE,
        folders=("jinchi", "dmr", "jichi"),
        marks=("list.csv",),
        expected="jinchi/ (or dmr/) with list.csv and the pictures 1_1_R.jpg ... beside it",
    ),
    Named(
        name="retinopathy",
        about="messidor2, aptos2019 and jinchi together; groups: the hospitals",
        page="those of messidor2, aptos2019 and jinchi",
        licence="those of its three parts",
        folders=(),
        marks=(),
        expected="the files of messidor2, aptos2019 and jinchi",
    ),
    Named(
        name="chestxray14",
        about="112,120 chest X-rays of 30,805 patients with 14 labels (NIH)",
        page="https://nihcc.app.box.com/v/ChestXray-NIHCC",
        licence=SEE_PAGE,
        folders=("chestxray14", "ChestX-ray14", "ChestXray-NIHCC", "CXR8", "nih-chest-xrays"),
        marks=("Data_Entry_2017*.csv",),
        expected="chestxray14/ with Data_Entry_2017_v2020.csv, train_val_list.txt, test_list.txt and the pictures in "
        "images/ (or images_001/images/ ...)",
    ),
    Named(
        name="human-proteins",
        about="20,504 human proteins as residue graphs (10 angstrom) with Gene Ontology terms",
        page="https://alphafold.ebi.ac.uk and https://geneontology.org",
        licence="CC BY 4.0 (AlphaFold DB, Gene Ontology)",
        folders=("proteins", ""),
        marks=("graphs_ca10A.npz",),
        expected="proteins/ with graphs_ca10A.npz, go_labels.npz and sequences.fasta.gz; others are built from "
        "structures by `augtree data build proteins`",
    ),
    tu_set("COLLAB", "5,000 collaborations of scientists, 3 fields"),
    tu_set("DD", "1,178 proteins, enzymes or not"),
    tu_set("IMDB-BINARY", "1,000 networks of actors, 2 genres"),
    tu_set("MUTAG", "188 molecules, mutagenic or not"),
    tu_set("NCI1", "4,110 molecules, active against lung cancer or not"),
    tu_set("PROTEINS", "1,113 proteins, enzymes or not"),
    tu_set("REDDIT-BINARY", "2,000 discussion threads, 2 kinds of community"),
)
CATALOGUE = {one.name: one for one in SETS}
UNION = ("aptos2019", "jinchi", "messidor2")
"""The parts of retinopathy."""


def present(name: str, root: Path) -> bool:
    """Whether a set's files lie below the root."""
    if name == "digits":
        return True
    if name == "retinopathy":
        return all(present(part, root) for part in UNION)
    return CATALOGUE[name].folder(root) is not None
