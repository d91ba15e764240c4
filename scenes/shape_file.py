"""Writes .shape files: round cones joined to one body (docs/meshes.md), for the make.py of scenes/mixed and scenes/rigidify."""


def write_shape(name, tets, blend, cones, regions=()):
    def row(numbers):
        return " ".join(f"{x:.6g}" for x in numbers)

    with open(f"{name}.shape", "w") as out:
        out.write(f"# written by make.py\ntets {tets}\nblend {blend}\n")
        for a, b, ra, rb in cones:
            out.write(f"cone {row(a)} {row(b)} {row([ra, rb])}\n")
        for region, a, b, ra, rb in regions:
            out.write(f"region {region} {row(a)} {row(b)} {row([ra, rb])}\n")
