"""Floors from other formats: VDMA LIF (JSON) and openTCS plant models (XML)."""
