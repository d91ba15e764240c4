"""Writes a scene as a person would: a line for each key, and for each item of its lists."""

import json


def write_scene(path, scene):
    lines = []
    for key, value in scene.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            items = ",\n".join("    " + json.dumps(item) for item in value)
            lines.append(f"  {json.dumps(key)}: [\n{items}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
