"""The parts of a model: pickers (which anchors), encoders (what a position is), decoders (what two positions say)."""

from typing import TYPE_CHECKING

from psgnn.doors import door

if TYPE_CHECKING:
    from psgnn.models._anchor_sets import AnchorSet, Measured, RandomAnchorSets
    from psgnn.models._channels import ChannelEncoder
    from psgnn.models._config import DECODERS, ESTIMATORS, ModelConfig
    from psgnn.models._decoders import DistanceDecoder, DotDecoder, SetDecoder
    from psgnn.models._encoders import AnchorEncoder, AnchorLayer, ConvEncoder
    from psgnn.models._models import PositionModel, build_model
    from psgnn.models._pickers import RandomSets, RulePicker, ScorePicker, SequentialPicker
    from psgnn.models._presets import MODELS, PRESETS
    from psgnn.models._subsets import KSubset
    from psgnn.models._view import TensorView, view_of

__all__ = [
    "DECODERS",
    "ESTIMATORS",
    "MODELS",
    "PRESETS",
    "AnchorEncoder",
    "AnchorLayer",
    "AnchorSet",
    "ChannelEncoder",
    "ConvEncoder",
    "DistanceDecoder",
    "DotDecoder",
    "KSubset",
    "Measured",
    "ModelConfig",
    "PositionModel",
    "RandomAnchorSets",
    "RandomSets",
    "RulePicker",
    "ScorePicker",
    "SequentialPicker",
    "SetDecoder",
    "TensorView",
    "build_model",
    "view_of",
]

__getattr__, __dir__ = door(
    __name__,
    {
        "_anchor_sets": ["AnchorSet", "Measured", "RandomAnchorSets"],
        "_channels": ["ChannelEncoder"],
        "_config": ["DECODERS", "ESTIMATORS", "ModelConfig"],
        "_decoders": ["DistanceDecoder", "DotDecoder", "SetDecoder"],
        "_encoders": ["AnchorEncoder", "AnchorLayer", "ConvEncoder"],
        "_models": ["PositionModel", "build_model"],
        "_pickers": ["RandomSets", "RulePicker", "ScorePicker", "SequentialPicker"],
        "_presets": ["MODELS", "PRESETS"],
        "_subsets": ["KSubset"],
        "_view": ["TensorView", "view_of"],
    },
)
