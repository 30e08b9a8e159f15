"""An extension of griffe, which reads the Python package for its reference."""

from typing import Any

import griffe


class Members(griffe.Extension):
    """Shows the arguments of functions that `takes` and `init_takes` of chaski._spec decorate.

    Their code has one parameter, an instance of a dataclass, whose members callers pass.
    """

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Replaces that parameter in all functions of a package."""
        for module in pkg.modules.values():
            for holder in (module, *module.classes.values()):
                if holder.is_class and not holder.is_alias and not holder.docstring:
                    for base in holder.mro()[:1]:  # as inspect.getdoc does
                        holder.docstring = base.docstring
                if not holder.is_alias:
                    for function in holder.functions.values():
                        if not function.is_alias:
                            expand(function)


def expand(function: griffe.Function) -> None:
    """Replaces the parameter of a function by the members of its options."""
    for decorator in function.decorators:
        called, _, options = str(decorator.value).rstrip(")").partition("(")
        if called not in ("takes", "init_takes"):
            continue
        last = list(function.parameters)[-1].name
        del function.parameters[last]
        cls = function.module[options]
        members: dict[str, griffe.Parameter] = {}
        for base in [*reversed(cls.mro()), cls]:
            for name, attribute in base.attributes.items():
                if attribute.annotation is not None:
                    members[name] = parameter(name, attribute)
        keyword = griffe.ParameterKind.keyword_only
        for member in sorted(members.values(), key=lambda p: (p.kind is keyword, bool(p.default))):
            function.parameters.add(member)


def parameter(name: str, attribute: griffe.Attribute) -> griffe.Parameter:
    """Returns a member of a dataclass as a parameter."""
    default = None if attribute.value is None else str(attribute.value)
    kind = griffe.ParameterKind.keyword_only
    if default and default.startswith("field("):
        if "kw_only=False" in default:
            kind = griffe.ParameterKind.positional_or_keyword
        factory = default.partition("default_factory=")[2].strip(")")
        default = f"{factory}()" if factory else None
    return griffe.Parameter(name, annotation=attribute.annotation, kind=kind, default=default)
