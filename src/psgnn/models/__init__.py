"""The parts of a model: pickers (which anchors), encoders (what a position is), decoders (what two positions say)."""

from psgnn.models._channels import ChannelEncoder
from psgnn.models._config import DECODERS, ESTIMATORS, ModelConfig
from psgnn.models._decoders import DistanceDecoder, DotDecoder, SetDecoder
from psgnn.models._encoders import AnchorEncoder, AnchorLayer, ConvEncoder
from psgnn.models._models import MODELS, PRESETS, PositionModel, build_model
from psgnn.models._pickers import RandomSets, RulePicker, ScorePicker, SequentialPicker
from psgnn.models._subsets import KSubset
from psgnn.positions._choices import Choice, Measured, SetChoice
from psgnn.positions._view import View, view_of

__all__ = [
    "DECODERS",
    "ESTIMATORS",
    "MODELS",
    "PRESETS",
    "AnchorEncoder",
    "AnchorLayer",
    "ChannelEncoder",
    "Choice",
    "ConvEncoder",
    "DistanceDecoder",
    "DotDecoder",
    "KSubset",
    "Measured",
    "ModelConfig",
    "PositionModel",
    "RandomSets",
    "RulePicker",
    "ScorePicker",
    "SequentialPicker",
    "SetChoice",
    "SetDecoder",
    "View",
    "build_model",
    "view_of",
]
