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
        del function.parameters[list(function.parameters)[-1].name]
        cls, keyword = function.module[options], griffe.ParameterKind.keyword_only
        parameters = list(cls.parameters)[1:]  # without self
        for parameter in parameters:
            if "kw_only=False" in str(cls.all_members[parameter.name].value):
                parameter.kind = griffe.ParameterKind.positional_or_keyword
        for parameter in sorted(parameters, key=lambda p: (p.kind is keyword, bool(p.default))):
            function.parameters.add(parameter)
