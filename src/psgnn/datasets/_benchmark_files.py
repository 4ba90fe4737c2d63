"""The files of published benchmarks: splits that come with their negatives.

Facts only, as in :mod:`psgnn.datasets._files`.
"""

from __future__ import annotations

from psgnn.datasets._files import Copy, DataFile, one_file

WALKPOOL_PAGE = "https://github.com/DaDaCheng/WalkPooling"
_WALKPOOL = "https://raw.githubusercontent.com/DaDaCheng/WalkPooling/f0f49f72faeb4cc61ead74f5264936b9a16c5a7c/data/splitted"
_SEAL_SPLITS: dict[str, tuple[tuple[int, str], ...]] = {
    "USAir": (
        (9130, "6642d77bbea3a5df4313d1d67a5a016adc065c06565a9ae27a052c3e91a026ef"),
        (9122, "4d4d57aacf316378ef1c549e55e9af83839db93c3d2653ef8d6e1dae9670ff1e"),
        (9165, "2e83977506eb3e82f26c31869455f262388fcbc8f15ddfe2fc8c3b8d9f4d9d9a"),
        (9141, "ea6845a873836fb621581bf392d793fa1906b82ac1d578567f2171cab78451f3"),
        (9125, "dc2ecf6969c1a73ea70280d19a835b9f2e46fb576b7f3c0efd7958ece3a916eb"),
        (9151, "6c2b01580478bcca49534da510074693905179910b9367bf40b7744eb91fa256"),
        (9118, "8545685e6719efee19e96958e126e30fe94a0e5aa4f423a0ecc4d0d545c2ad0f"),
        (9163, "d22ca6f3789e4658e3be605c050bd45a2100644f06735d743420764ca0dafb69"),
        (9180, "17d0bd66a0dd130e99c5889aca6726086341d4dea835dc2ff6a812160f0e339c"),
        (9158, "f8ffaec612e25157e89006c6635b5dd8934d62c0930e8ecfd3054b039da2a528"),
    ),
    "Celegans": (
        (9455, "39f3a7fdae22e2c92d2b04ee8887de7de07e45efe916cf1f47434c6cdb9e8b87"),
        (9492, "19e7223916bf25510b938b14eca15dba68ef9019fc6943c3d7c1436422858c15"),
        (9531, "d1356478e1d68b283a88ed953322fe7eae0a6cd1fec16edca5993d5c5999b674"),
        (9501, "0d3b3b2f28d6a18a6fa2d68849ec1a708b83640f003695001a5714531a4aa8af"),
        (9475, "3d2c10acf7eb719441effd54528d56e22f4f94404e996c8a60c7b2184e3bd359"),
        (9497, "857e458ddb76223e126ed7a97a1736962c7d2a9e4107bcb0eb92eebb1343d763"),
        (9504, "c0d83b600e047bf852257138b2ed7354c440c62832d3b0d96a2e3e273dfbb9dc"),
        (9488, "edef783911a83aeb07e1018adbd9982f4523f20c375ae19cb24c441ff331dae6"),
        (9534, "235ecaf1b0281f41b8e7e4698a5d201e0ed9e34b02414d8bd1fb3448deb965c9"),
        (9528, "7e387c83f53802bd00f38f05dc492a31eb44aafa2611cef19b27e5113e572260"),
    ),
    "Power": (
        (40948, "23438b6de7bd917c8b08699b410457f33dcecc3018b598c63d31bfc140b3f455"),
        (40980, "d4d965fafe8cb691055911d67ea019a0fc5718d7a1ca195d6db084ec2fb45d59"),
        (41039, "bb35e639ce1b201e2e9df1471f0811036dce61e97a126e81ee92f9e711a5ea20"),
        (40901, "74e1998ba92b4ad3b7b49cfce623519f14715a64b2eac1fdabcb25e400dfee5f"),
        (40960, "43afab6b6df58a925a3abf769d43586b8c66e5ae81ee9040d0f67ebf9d1e6f93"),
        (40977, "3d2899895fa642c027869dce5e51fcfa2665c1d2dd0b12d7fedac0e6d953d3fe"),
        (40960, "6702efcaf54d05692648b335a0f948b07cecdefb8cfb0f7b7e715f0f85a91547"),
        (40938, "6e6cbc113f27e94a4c25d4ab1e1ec55523280e8cb85ebc2c13a9fe52bc1e7c0a"),
        (40994, "35bb0b5d304cddf58b534c79b2a361d50ff37ea339dc5d897386103d2010675e"),
        (40974, "e0b4d36e87c4f4c0de10d121407e6f9bd191691f81564dcd52c634b93982fef1"),
    ),
    "Router": (
        (37786, "10e5a4f8036a6a1abdf2799063ec7a0ea692abcf867f3c0ce6e5c6afdcacf195"),
        (37825, "a4c8c34547a0bd4280dcc8646a0dc595fd40714ca5d0a231e5978c6b45ce61cb"),
        (37791, "be56288af98e8cb0702eecbac503820b8ebfe5f87e62ef308517e20786330af2"),
        (37748, "05596c89205f175a1593f747411a96dff57b98ce797e65473c486cbd4ad396eb"),
        (37776, "82565a9211bc6d8b054c13e870ea76dbff1a5b8e5f5b4bd86820d7d0eebbab59"),
        (37789, "fe4f0c2df640d9a6ebd34d275dd97bfd730fc4ba268a08a5f3c7ebd7964f2948"),
        (37780, "bdf3ea0054a87cf1ed11bf7344900cd4c412a387ac5356eaab5af84de0f52b28"),
        (37830, "2d9fa46d492f478d584ff8cdca6932830bebf25dfc85272762df9a118106e1f5"),
        (37805, "8e4a216dad38d46e6d6e229203cea64575e781b2b24bf3ee6f786e327ee54109"),
        (37787, "265039be3bc402af7a25ea4f800b2d18f6dea4af2c7e66fa7eaa929fae6ee788"),
    ),
}
UNPINNED = ("NS", "PB", "Yeast", "Ecoli")  # of the same collection, whose checksums are not known here


def _unpinned(page: str, path: str, url: str = "") -> DataFile:
    """A file without a known checksum: it is used from a data folder, and never downloaded."""
    return DataFile((Copy(path, unchecked=True, url=url),), page)


SEAL_SPLITS = {
    name: {
        f"split {i}": one_file(
            WALKPOOL_PAGE,
            f"seal-splits/{name}_split_{i}.mat",
            size,
            sha256,
            f"{_WALKPOOL}/{name}_split_{i}.mat",
        )
        for i, (size, sha256) in enumerate(rows, 1)
    }
    for name, rows in _SEAL_SPLITS.items()
} | {
    name: {
        f"split {i}": _unpinned(
            WALKPOOL_PAGE, f"seal-splits/{name}_split_{i}.mat", f"{_WALKPOOL}/{name}_split_{i}.mat"
        )
        for i in range(1, 11)
    }
    for name in UNPINNED
}

HEART_PAGE = "https://github.com/Juanhui28/HeaRT"
_HEART = "https://raw.githubusercontent.com/selinceydeli/LPFormer/ac1816173c85c9a3354489abc9b144afc9cd1a73/dataset/citeseer"
HEART = {
    name.partition(".")[0]: one_file(HEART_PAGE, f"heart/citeseer/{name}", size, sha256, f"{_HEART}/{name}")
    for name, size, sha256 in (
        ("train_pos.txt", 36532, "1e97ad3a73ecfeb69489aa6d92d02dc44c2925b4056a8e4cd4b548f1c0ebaa27"),
        ("valid_pos.txt", 2127, "11ad6734a54824d84a3dfcede53bcd6b3051c012f4c44add04891858dacd968c"),
        ("valid_neg.txt", 2110, "28bc7d0e168ed82bd8dad4822bc00872f1fdc48fc4f98a41a4c79af7960cdf46"),
        ("test_pos.txt", 4208, "9a9e06bc89cfc090f35093ecfc4dd5e5e6b979f6be3442c8450f140af127898f"),
        ("test_neg.txt", 4249, "625f43c40585c770bf8ae335766cb1402bd1f225c5cd9c3ab426f2fd61334202"),
        (
            "heart_valid_samples.npy",
            1816128,
            "89cdc6fd98e059e2be200025174762c2ee82f86703152bb733271322b8fb3e65",
        ),
        (
            "heart_test_samples.npy",
            3640128,
            "fed77fda471126e038f0abd9cf42c8b2b9f1491c4c1cd4dd7d2c258a5239fd10",
        ),
    )
}

OGB_PAGE = "https://ogb.stanford.edu/docs/linkprop"


def _ogb(name: str, split: str) -> dict[str, DataFile]:
    """The files of a benchmark where the archive of OGB is unpacked into ``ogbl-NAME``."""
    page, folder = f"{OGB_PAGE}/#ogbl-{name}", f"ogbl-{name}"
    parts = {
        part: _unpinned(page, f"{folder}/split/{split}/{part}.pt") for part in ("train", "valid", "test")
    }
    return {**parts, "nodes": _unpinned(page, f"{folder}/raw/num-node-list.csv.gz")}


OGB = {
    name: _ogb(name, split)
    for name, split in (("collab", "time"), ("ppa", "throughput"), ("citation2", "time"))
}
OGB_NODE_FEATURES = {
    name: _unpinned(f"{OGB_PAGE}/#ogbl-{name}", f"ogbl-{name}/raw/node-feat.csv.gz") for name in OGB
}
