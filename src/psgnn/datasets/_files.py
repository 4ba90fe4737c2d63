"""The files of the real datasets: where they lie in a data folder, their checksums and canonical addresses.

Facts only; :mod:`psgnn.datasets._download` finds, fetches and checks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Copy:
    """One encoding of a file: where it lies in a data folder, how it is checked, what address serves it.

    ``sha256`` is of the bytes at ``path`` (of ``member`` where ``path`` is an archive). Where the canonical
    address serves the same graph in another encoding, ``edges_sha256`` accepts any encoding by its edges
    (see :func:`psgnn.datasets._parsing.edge_digest`). ``git_sha1`` is a git blob id.
    Of an ``unchecked`` file no checksum is known: it is used where it lies in a data folder, and never downloaded.
    """

    path: str
    sha256: str = ""
    size: int = 0
    url: str = ""
    member: str = ""
    edges_sha256: str = ""
    git_sha1: str = ""
    unchecked: bool = False


@dataclass(frozen=True)
class DataFile:
    """A file that a loader reads, in any of its copies, and the page that describes its source."""

    copies: tuple[Copy, ...]
    page: str


def one_file(page: str, path: str, size: int, sha256: str, url: str = "") -> DataFile:
    return DataFile((Copy(path, sha256=sha256, size=size, url=url),), page)


EMAIL_PAGE = "https://snap.stanford.edu/data/email-Eu-core.html"
_P_GNN = "https://raw.githubusercontent.com/JiaxuanYou/P-GNN/master/data"
EMAIL = {
    name: one_file(EMAIL_PAGE, f"email-eu-core/{name}.txt", size, sha256, f"{_P_GNN}/{name}.txt")
    for name, size, sha256 in (
        ("email", 192698, "23e0ca0bce21a053025e78f7e9691ac9210ae806a0689bd5edff3c3bac572d4c"),
        ("email_labels", 6537, "91a089f21ee35eb224066456fa5322c8ad57c0f07b2da7a58a3220c72b5d54b5"),
    )
}

PROTEIN_PAGE = "https://chrsmrrs.github.io/datasets/"
_PROTEIN_ZIP = "https://www.chrsmrrs.com/graphkerneldatasets/PROTEINS_full.zip"


def _protein(name: str, size: int, sha256: str, plain_sha256: str = "") -> DataFile:
    """A text file of PROTEINS_full: by itself (gzipped if large), or as a member of the published archive."""
    suffix = ".txt.gz" if plain_sha256 else ".txt"
    archive = Copy(
        "proteins_full/PROTEINS_full.zip",
        sha256=plain_sha256 or sha256,
        url=_PROTEIN_ZIP,
        member=f"PROTEINS_full/PROTEINS_full_{name}.txt",
    )
    alone = Copy(f"proteins_full/PROTEINS_full_{name}{suffix}", sha256=sha256, size=size)
    return DataFile((alone, archive), PROTEIN_PAGE)


PROTEIN = {
    "edges": _protein(
        "A",
        418831,
        "057390dd3599533fa9a0b8fd5d07272279c5034ced77d46b1bdaeb5bb3589f85",
        "4c4b33e272fc95cac6d27ed6d5d12b9a852c8610e91fff59f8f0dbdd5a20df67",
    ),
    "graph_of": _protein(
        "graph_indicator", 169673, "8d4ff1e852a5c28561e9bffb44cf9490bc552b13a3b6156dd12dc7f44e9afc4a"
    ),
    "labels": _protein(
        "node_labels", 86942, "f758e8ad3d6e3c026b50833d75f6f90735b94eb3345e4243707f495ca8afea8d"
    ),
    "attributes": _protein(
        "node_attributes",
        1018706,
        "94fae341a298e5c4cfb3702dd5cc4a8b1dac39027d80fd37a7cc459f3025988c",
        "79f9898318a21ce9592b8b7e43cf799745098c464838c54cecade3420108f06f",
    ),
}

PLANETOID_PAGE = "https://github.com/kimiyoung/planetoid"


def _planetoid(name: str, rows: Mapping[str, tuple[int, str]]) -> dict[str, DataFile]:
    raw = f"{PLANETOID_PAGE}/raw/master/data"
    return {
        part: one_file(
            PLANETOID_PAGE, f"planetoid/raw/ind.{name}.{part}", size, sha256, f"{raw}/ind.{name}.{part}"
        )
        for part, (size, sha256) in rows.items()
    }


PLANETOID = {
    "cora": _planetoid(
        "cora",
        {
            "tx": (148025, "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a"),
            "allx": (257305, "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543"),
            "ty": (28135, "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad"),
            "ally": (47959, "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71"),
            "graph": (59847, "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d"),
            "test.index": (5000, "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"),
        },
    ),
    "citeseer": _planetoid(
        "citeseer",
        {
            "tx": (260321, "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21"),
            "allx": (595021, "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668"),
            "ty": (24135, "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce"),
            "ally": (55623, "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95"),
            "graph": (61987, "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7"),
            "test.index": (5000, "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4"),
        },
    ),
    "pubmed": _planetoid(
        "pubmed",
        {
            "tx": (405505, "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d"),
            "ty": (12135, "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd"),
            "ally": (224739, "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e"),
            "graph": (471808, "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9"),
            "test.index": (6000, "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5"),
        },
    ),
}
# Without this file PubMed has no features. Only its git blob id is published.
PUBMED_FEATURES = DataFile(
    (
        Copy(
            "planetoid/raw/ind.pubmed.allx",
            git_sha1="3b86bccf08111c37c632a9dd8ab63db25ea76361",
            url=f"{PLANETOID_PAGE}/raw/master/data/ind.pubmed.allx",
        ),
    ),
    PLANETOID_PAGE,
)

SEAL_PAGE = "https://github.com/muhanzhang/SEAL/tree/master/Python/data"
_SEAL_RAW = "https://github.com/muhanzhang/SEAL/raw/master/Python/data"
SEAL = {
    name: one_file(SEAL_PAGE, f"seal/{name}.mat", size, sha256, f"{_SEAL_RAW}/{name}.mat")
    for name, size, sha256 in (
        ("USAir", 5213, "6b48a37e2bb398234e5383787c30dca087de704366a2b7b05d64cc2f53210e0b"),
        ("Celegans", 6263, "450bb6f3ca833a65f53ee59103945ef87da70de2c6d262b1a760b9eefce287d6"),
        ("Power", 31194, "87d7b9d5449b6a18fad4fdd662efd33be84c805ea66692f9e2e0791569c5a478"),
        ("Router", 31434, "bae603199c2ddb0f8776acb1962c9c6ed89773da9d41377d6a7f8cc2b1e3a1c1"),
        ("facebook", 243379, "0775e6d3739445de0112b74d7dd843c67dac34d53a216b204981a415507abf9f"),
        ("arxiv", 610642, "e485598f704282323a2463179b05ebfb1da303d89b3bd9cf75f5eeaa5e823468"),
        ("PPI_subgraph", 162526, "d33a9255e30a1eaa39e9e7cf6f03722c0a028cc1d8ca51356e496d4d84bd5d81"),
        ("Wikipedia", 322464, "c017a375285bb775a458ebb2a7c60c1c868c36efd7f5d48c2d0dfcb2ce3f6169"),
    )
}

_SNAP = "https://snap.stanford.edu/data"
# SNAP serves three of these as directed lists, and the road and Brightkite graphs come in archives: the
# files of a prepared data folder are known by their bytes, those of the canonical address by their edges.
SCALE = {
    "web-NotreDame": DataFile(
        (
            Copy(
                "scale/web-NotreDame.txt.gz",
                sha256="d4f4916db2b45060d4dde21fca2d6d757f245f4397528f72230eff3bb57e499e",
                size=3708538,
                url=f"{_SNAP}/web-NotreDame.txt.gz",
                edges_sha256="ad3ca868aa44c6f90ab9dba3c1a5b5656bf1f50d3d1260084febc40ce879c965",
            ),
        ),
        f"{_SNAP}/web-NotreDame.html",
    ),
    "road-usroads": DataFile(
        (
            Copy(
                "scale/road-usroads.txt.gz",
                sha256="4653ea8632382c09b8fbc2d42725d777b4198f46ec2d9c0a63d719b4463c887d",
            ),
            Copy(
                "scale/usroads.tar.gz",
                url="https://sparse.tamu.edu/MM/Gleich/usroads.tar.gz",
                member="usroads/usroads.mtx",
                edges_sha256="7704be059b597f5f87fb3e394fcea95bc5defa6ae0a976e41d33179e5a54e22a",
            ),
        ),
        "https://sparse.tamu.edu/Gleich/usroads",
    ),
    "road-euroroad": DataFile(
        (
            Copy(
                "scale/road-euroroad.txt.gz",
                sha256="3da33f660abd544df74dff8701b6d2e9c7eca0ce07ae989c545859bbe8e8f202",
            ),
            Copy(
                "scale/subelj_euroroad.tar.bz2",
                url="http://konect.cc/files/download.tsv.subelj_euroroad.tar.bz2",
                member="subelj_euroroad/out.subelj_euroroad_euroroad",
                edges_sha256="ccc78fcb5d70e8d52cd2c21988e9bf99d0e20508bea0f8bf2975fb58140a7f68",
            ),
        ),
        "http://konect.cc/networks/subelj_euroroad/",
    ),
    "soc-slashdot0902": DataFile(
        (
            Copy(
                "scale/soc-slashdot0902.txt.gz",
                sha256="8d22f25cb057c832269e0b4c487148edf810a6d21394fda5c7dba68be822d429",
                url=f"{_SNAP}/soc-Slashdot0902.txt.gz",
                edges_sha256="f49d516f892bf325c6977ecc692192d874d23df9ea639e561b2ab9ddaddcf4f7",
            ),
        ),
        f"{_SNAP}/soc-Slashdot0902.html",
    ),
    "p2p-Gnutella31": DataFile(
        (
            Copy(
                "scale/p2p-Gnutella31.txt.gz",
                sha256="37da4b96352ff0f2ef8e18b9abbc6a7a21a1d9f7428be6289aa9f0709bcc8e38",
                url=f"{_SNAP}/p2p-Gnutella31.txt.gz",
                edges_sha256="3cef1e94ea591b9d78f6134892d75c419c87227c7b2012f84b398a571fa0477c",
            ),
        ),
        f"{_SNAP}/p2p-Gnutella31.html",
    ),
    "soc-brightkite": DataFile(
        (
            Copy(
                "scale/soc-brightkite.txt.gz",
                sha256="b79b6d736c39010ee4c52c5943c9135405d5a211c657f2a4df376bfb16552045",
            ),
            Copy(
                "scale/soc-brightkite.zip",
                url="https://nrvis.com/download/data/soc/soc-brightkite.zip",
                member="soc-brightkite.mtx",
                edges_sha256="f53c3bb321603109b7d993d990519399bb8f3d844fa3a1288e18cd763943e840",
            ),
        ),
        "https://networkrepository.com/soc-brightkite.php",
    ),
    "email-Enron": DataFile(
        (
            Copy(
                "scale/email-Enron.txt.gz",
                sha256="0271f78dc506e4493906f9f64240bf212578ee1e51dbbcfbdd1df94ef505c2d8",
                url=f"{_SNAP}/email-Enron.txt.gz",
                edges_sha256="dd85f4ea2c3d40fc6745a86c21138cf322331cc32b81273fefadff8e3533d294",
            ),
        ),
        f"{_SNAP}/email-Enron.html",
    ),
}


def _kind(
    page: str, name: str, sha256: str, plain_sha256: str = "", url: str = "", member: str = ""
) -> DataFile:
    """A gzipped file, or its text as published, alone or as a member of an archive."""
    copies = [Copy(f"kinds/{name}.gz", sha256=sha256)]
    if url:
        copies.append(Copy(f"kinds/{url.rpartition('/')[2]}", sha256=plain_sha256, url=url, member=member))
    return DataFile(tuple(copies), page)


_OPENFLIGHTS = "https://openflights.org/data.php"
_OPENFLIGHTS_DATA = "https://raw.githubusercontent.com/jpatokal/openflights/master/data"
KINDS = {
    "movielens-100k": {
        "edges": _kind(
            "https://grouplens.org/datasets/movielens/100k/",
            "movielens-100k.tsv",
            "d5cd19fba4562fe2867bf2964d99d97ec55bce45b150df3763dfa8668cf22f4f",
            "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
            "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
            "ml-100k/u.data",
        )
    },
    "bitcoin-otc": {
        "edges": _kind(
            f"{_SNAP}/soc-sign-bitcoin-otc.html",
            "bitcoin-otc.csv",
            "bbc979ecbc7362dd46f199be461213734d55d1fd0cd5d8e25879d38963f2bf42",
        )
    },
    "college-messages": {
        "edges": _kind(
            f"{_SNAP}/CollegeMsg.html",
            "college-messages.txt",
            "42b894ca71e1963fcfd9682fd9ac5efaeca4ef9a1d472f49891788ef662a5509",
            "e00ba2415373dee52c00616065bcceaa4750e78de60d1855c76470600f10740f",
            f"{_SNAP}/CollegeMsg.txt.gz",
        )
    },
    "openflights": {
        "edges": _kind(
            _OPENFLIGHTS,
            "openflights-routes.csv",
            "c3785ef2e35f039db1eb3af33d9f1b395dda030e8e6755420b185d9ec361e1e0",
            "bd373706238134f619c624c606dccc74c05c2582a977c489c81de501735f2390",
            f"{_OPENFLIGHTS_DATA}/routes.dat",
        ),
        "airports": _kind(
            _OPENFLIGHTS,
            "openflights-airports.csv",
            "295f73b20b6319d058c1270e797ce0b2b10780d76232b41d0812fddf808baa1e",
            "9387cdb38df5bd664da823f8ccb69fdd9b33a1888f5b7cca09c34a3cd9ff59f9",
            f"{_OPENFLIGHTS_DATA}/airports.dat",
        ),
    },
    "oldenburg-roads": {
        "edges": _kind(
            "https://users.cs.utah.edu/~lifeifei/SpatialDataset.htm",
            "oldenburg-roads.txt",
            "07b978807b162c94b1ff170c8de9a2cd9221f0dd5330c0a7cf3728a622c2dcf6",
            "b52dbdd9ec7fb1f25287384325765fe5a52300b54b84623f99d68596d994c4e5",
            "https://users.cs.utah.edu/~lifeifei/research/tpq/OL.cedge",
        )
    },
}

# The official split is published as pickled .pt files without a checksum, which are never opened here. So the
# arrays re-saved as .npz have to be in a data folder already: there is no address to download them from.
DDI_PAGE = "https://ogb.stanford.edu/docs/linkprop/#ogbl-ddi"
DDI = {
    "edges": one_file(
        DDI_PAGE,
        "ogbl-ddi/edge.csv.gz",
        2810105,
        "b2c585f425f49b640ee5a3b451069124651ee0f2863a5b6ee6737a6b14c27a6e",
    ),
    "split": one_file(
        DDI_PAGE,
        "ogbl-ddi/split_valid_test.npz",
        1412791,
        "884bc4566d91a4269bc25f6ca61d2001bfb4099d0ef2f9366096031612c65984",
    ),
}
DDI_NAMES = one_file(
    DDI_PAGE,
    "ogbl-ddi/nodeidx2drugid.csv.gz",
    20899,
    "06eca54dc8f24f112a307a435ed948a3dc6255185a133f4b64ff1ccb8e22caf0",
)
