"""The parts of a model: pickers (which anchors), encoders (what a position is), decoders (what two positions say)."""

from psgnn.nn.channels import ChannelEncoder
from psgnn.nn.choices import Choice, Measured, SetChoice
from psgnn.nn.config import DECODERS, ESTIMATORS, ModelConfig
from psgnn.nn.decoders import DistanceDecoder, DotDecoder, SetDecoder
from psgnn.nn.encoders import AnchorEncoder, AnchorLayer, ConvEncoder
from psgnn.nn.models import MODELS, PRESETS, PositionModel, build_model
from psgnn.nn.pickers import RandomSets, RulePicker, ScorePicker, SequentialPicker
from psgnn.nn.subsets import KSubset
from psgnn.nn.view import View, view_of

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
