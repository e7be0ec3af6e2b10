"""The admission policy that gives small jobs a slice of a GPU although they ask for a whole one.

Kubernetes' own: no webhook has to run. It changes jobs and not pods, so that Kueue, too, counts the
slice against a quota and not the GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import yaml

from scheduler_advisor.handover.kubernetes.objects import GPU

if TYPE_CHECKING:
    from scheduler_advisor.engine.parts.mig import Profile

NAME = "small-jobs-on-slices"
FILE = "small-jobs-on-slices.yaml"
API = "admissionregistration.k8s.io/v1beta1"
_CONTAINER = "object.spec.template.spec.containers[0]"
_LIMITS, _REQUESTS = f"{_CONTAINER}.resources.limits", f"{_CONTAINER}.resources.requests"
_PATH = "/spec/template/spec/containers/0/resources"


def slice_policy(names: Iterable[str], profile: Profile) -> str:
    """Jobs of these names, digits apart, whose one container asks for one GPU get the slice.

    Needs Kubernetes' MutatingAdmissionPolicy (1.34, behind its feature gate), the device plugin
    with `migStrategy: mixed` on nodes that are cut, and of Kueue a ClusterQueue that covers the
    slice's resource.
    """
    bodies = [_policy(sorted(set(names)), profile), _binding()]
    return f"# {FILE}\n" + "---\n".join(
        yaml.safe_dump(body, sort_keys=False, width=1000) for body in bodies
    )


def name_pattern(names: Iterable[str]) -> str:
    """An RE2 pattern that holds for these names whatever their numbers are, as names of objects
    are written; from a `generateName` five letters follow, or nothing as long as none is made."""
    alike = sorted({re.sub(r"\d+", "[0-9]+", re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-"))
                    .replace(".", "[.]") for name in names})  # fmt: skip
    return f"^({'|'.join(alike)})(-([a-z0-9]{{5}})?)?$"


def _policy(names: list[str], profile: Profile) -> dict[str, Any]:
    meta = "object.metadata"
    named = f"(has({meta}.name) ? {meta}.name : {meta}.generateName)"
    return {
        "apiVersion": API, "kind": "MutatingAdmissionPolicy", "metadata": {"name": NAME},
        "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"],
                 "resources": ["jobs"]},
            ]},
            "matchConditions": [
                {"name": "small", "expression": f"{named}.matches('{name_pattern(names)}')"},
                {"name": "one-container",
                 "expression": "size(object.spec.template.spec.containers) == 1"},
                {"name": "one-gpu", "expression": f"{_names_gpu('limits', _LIMITS)} && "
                 f"string({_LIMITS}['{GPU}']) == '1'"},
            ],
            # A job that the policy cannot change keeps the GPU that it asked for.
            "failurePolicy": "Ignore", "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _patch(profile)}}],
        },
    }  # fmt: skip


def _patch(profile: Profile) -> str:
    """The GPU out of limits, and of requests where they name it; the slice into limits, which are
    requests as well where these do not name it."""
    gpu = f"jsonpatch.escapeKey('{GPU}')"
    slice_ = f"jsonpatch.escapeKey('{resource_of(profile)}')"
    remove = f'JSONPatch{{op: "remove", path: "{_PATH}/requests/" + {gpu}}}'
    return (
        f'[JSONPatch{{op: "remove", path: "{_PATH}/limits/" + {gpu}}}, '
        f'JSONPatch{{op: "add", path: "{_PATH}/limits/" + {slice_}, value: "1"}}] + '
        f"({_names_gpu('requests', _REQUESTS)} ? [{remove}] : [])"
    )


def _names_gpu(field: str, amounts: str) -> str:
    return f"has({_CONTAINER}.resources.{field}) && '{GPU}' in {amounts}"


def _binding() -> dict[str, Any]:
    return {
        "apiVersion": API, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": NAME},
        "spec": {"policyName": NAME},
    }  # fmt: skip


def resource_of(profile: Profile) -> str:
    """What the device plugin calls the slice; a plus sign is no part of a resource's name."""
    return f"nvidia.com/mig-{profile.name.replace('+', '.')}"
