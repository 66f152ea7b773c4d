"""Hugging Face's encoder-decoder Transformers of BART's kind: what MarianMT, M2M100, BART, mBART and Pegasus share.

Their layers have the same names and the same order of operations up to the place of the norms, so that one mapping of
weights and one reading of the configuration serve all. Source: the library's public configuration and modelling files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tandem.extras.importing.fields import Fields
from tandem.extras.importing.model import BIASES, Types
from tandem.extras.importing.plan import NEVER, ParameterPlan, Plan, TensorPart, part
from tandem.models.architectures.layers.attention import Activation
from tandem.models.architectures.transformer import TransformerConfig
from tandem.models.errors import OptionError
from tandem.models.search import SearchOptions
from tandem.models.vocabulary import BOS, EOS, PAD

ACTIVATIONS: Mapping[str, Activation] = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}

# Of the library's base class, of training, and of generating: nothing that a logit depends on.
_WITHOUT_MEANING = (
    *("_name_or_path", "_commit_hash", "_num_labels", "architectures", "attn_implementation", "_attn_implementation"),
    *("dtype", "torch_dtype", "torchscript", "transformers_version", "tokenizer_class", "task_specific_params"),
    *("finetuning_task", "problem_type", "id2label", "label2id", "num_labels", "return_dict", "output_attentions"),
    *("output_hidden_states", "use_cache", "use_bfloat16", "use_return_dict", "gradient_checkpointing", "init_std"),
    *("chunk_size_feed_forward", "tf_legacy_loss", "dropout", "attention_dropout", "activation_dropout"),
    *("classifier_dropout", "classif_dropout", "encoder_layerdrop", "decoder_layerdrop", "save_step"),
    *("num_hidden_layers", "hidden_size", "num_attention_heads", "cross_attention_hidden_size"),
    *("bos_token_id", "sep_token_id", "forced_eos_token_id", "max_length", "max_new_tokens", "min_length"),
    *("do_sample", "early_stopping", "num_beams", "temperature", "top_k", "top_p", "typical_p", "length_penalty"),
    *("no_repeat_ngram_size", "num_return_sequences", "output_scores", "return_dict_in_generate", "bad_words_ids"),
    *(
        "remove_invalid_values",
        "forced_bos_token_id",
        "suppress_tokens",
        "extra_pos_embeddings",
        "renormalize_logits",
        "output_past",
    ),
    *("student_encoder_layers", "student_decoder_layers", "replacing_rate", "language", "renormalize_logits"),
    *("force_bos_token_to_be_generated", "add_bias_logits", "static_position_embeddings", "_from_model_config"),
)
# What another value would change in the search: it is given in either of two files.
_GENERATION_FIXED: Mapping[str, Any] = {
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "exponential_decay_length_penalty": None,
    "begin_suppress_tokens": None,
    "do_sample": False,
}


def common_fields(fields: Fields) -> dict[str, Any]:
    """What every configuration of the kind says of the Transformer, by our names; the vocabularies are left open."""
    heads = {side: fields.number(f"{side}_attention_heads") for side in ("encoder", "decoder")}
    hidden = {side: fields.number(f"{side}_ffn_dim") for side in ("encoder", "decoder")}
    for name, sides in (("attention_heads", heads), ("ffn_dim", hidden)):
        if len(set(sides.values())) > 1:
            both = f"encoder_{name} ({sides['encoder']}) and decoder_{name} ({sides['decoder']})"
            fields.refuse(f"{both} must be equal")
    fields.fixed(is_encoder_decoder=True, tie_encoder_decoder=False, is_decoder=False, add_cross_attention=False)
    fields.fixed(pruned_heads={}, tie_word_embeddings=True)
    prefix = fields.take("prefix")
    if isinstance(prefix, str) and prefix.strip():
        fields.refuse(f"prefix must be empty, but is {prefix!r}")
    fields.without_meaning(*_WITHOUT_MEANING, *_GENERATION_FIXED)
    return {
        "width": fields.number("d_model", least=2),
        "hidden": hidden["encoder"],
        "heads": heads["encoder"],
        "encoder_layers": fields.number("encoder_layers"),
        "decoder_layers": fields.number("decoder_layers"),
        "max_positions": fields.number("max_position_embeddings"),
        "activation": fields.choice("activation_function", ACTIVATIONS),
        "scale_embedding": fields.flag("scale_embedding", False),
        **BIASES,
    }


def make_plan(config: TransformerConfig, source: Types, target: Types, *, position_offset: int = 0) -> Plan:
    """How the weights of the kind become ours; every tensor that may have several names has them all.

    Args:
        config: of the model.
        source, target: the types of the vocabularies.
        position_offset: rows of learned tables of positions before the first symbol's.
    """
    shared = "model.shared.weight"
    source_table = part(shared, "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
    target_table = part(shared, "model.decoder.embed_tokens.weight", "lm_head.weight")
    if config.tied != "all":
        source_table = part("model.encoder.embed_tokens.weight")
        target_table = part("model.decoder.embed_tokens.weight", "lm_head.weight")
    plan: dict[str, ParameterPlan] = {
        "source_embedding": ParameterPlan((source_table,), source.rows),
        "target_embedding": ParameterPlan((target_table,), target.rows),
        "output_bias": ParameterPlan((part("final_logits_bias", flat=True),), target.output_rows, NEVER, optional=True),
    }
    for side, ours in (("encoder", "source"), ("decoder", "target")):
        positions = TensorPart((f"model.{side}.embed_positions.weight",), skipped=position_offset)
        plan[f"{ours}_positions.table"] = ParameterPlan((positions,))
        for theirs, name in (("layernorm_embedding", f"{ours}_embedding_norm"), ("layer_norm", f"{side}_norm")):
            plan |= _both(name, f"model.{side}.{theirs}")
    for layer in range(config.encoder_layers):
        ours, theirs = f"encoder.{layer}", f"model.encoder.layers.{layer}"
        plan |= _attention_and_feed_forward(ours, theirs, last_norm=1)
    for layer in range(config.decoder_layers):
        ours, theirs = f"decoder.{layer}", f"model.decoder.layers.{layer}"
        plan |= _attention_and_feed_forward(ours, theirs, last_norm=2)
        for own, name in (("query", "q"), ("source_keys", "k"), ("source_values", "v"), ("output", "out")):
            plan |= _both(f"{ours}.{own}", f"{theirs}.encoder_attn.{name}_proj")
        plan |= _both(f"{ours}.norms.1", f"{theirs}.encoder_attn_layer_norm")
    return plan


def repeated_names(config: TransformerConfig) -> tuple[str, ...]:
    """Tensors that files of the kind may hold beside those of the plan: copies of others, and computed positions."""
    names = ["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"]
    if config.positions != "learned":
        names += [f"model.{side}.embed_positions.{kind}" for side in ("encoder", "decoder") for kind in _TABLES]
    return tuple(names)


_TABLES = ("weight", "weights", "_float_tensor")


def _both(ours: str, *theirs: str) -> dict[str, ParameterPlan]:
    """Weight and bias of a map, or of several below one another."""
    return {
        f"{ours}.{kind}": ParameterPlan(tuple(part(f"{name}.{kind}") for name in theirs)) for kind in ("weight", "bias")
    }


def _attention_and_feed_forward(ours: str, theirs: str, last_norm: int) -> dict[str, ParameterPlan]:
    return {
        **_both(f"{ours}.attention.query_key_value", *(f"{theirs}.self_attn.{name}_proj" for name in "qkv")),
        **_both(f"{ours}.attention.output", f"{theirs}.self_attn.out_proj"),
        **_both(f"{ours}.norms.0", f"{theirs}.self_attn_layer_norm"),
        **_both(f"{ours}.feed_forward.inner", f"{theirs}.fc1"),
        **_both(f"{ours}.feed_forward.outer", f"{theirs}.fc2"),
        **_both(f"{ours}.norms.{last_norm}", f"{theirs}.final_layer_norm"),
    }


def search_options(
    tables: Sequence[Mapping[str, Any]],
    types: Types | None,
    longest: int,
    faults: list[str],
    waived: Sequence[str] = (),
) -> SearchOptions:
    """The defaults of the search that the files name; what the search cannot do is a fault.

    Hypotheses end as soon as as many are complete as the beam is wide (``early_stopping``), whatever the files say.

    Args:
        tables: generation_config.json and config.json, the first that has a field counts.
        types: of the target; None where they could not be read.
        longest: target tokens, without the end, that the model has positions for.
        faults: that are added to.
        waived: fields that do not matter.
    """
    ours = {} if types is None else {row: token for token, row in reversed([*enumerate(types.rows)])}
    merged = {key: value for table in reversed(tables) for key, value in table.items() if value is not None}
    fields = Fields(merged, "generation_config.json or config.json", faults, waived)
    fields.fixed(**_GENERATION_FIXED)
    beam = fields.number("num_beams", 1)
    most = fields.number("max_length", longest + 2) - 2  # theirs counts what decoding begins with, and the end
    most = fields.number("max_new_tokens", most + 1, least=2) - 1
    least = max(0, fields.number("min_length", 0, least=0) - 1)
    penalty = fields.real("length_penalty", 1.0)
    repeated = fields.number("no_repeat_ngram_size", 0, least=0)
    banned = [PAD, BOS]
    for words in fields.take("bad_words_ids") or ():
        if isinstance(words, list) and len(words) == 1 and isinstance(words[0], int):
            banned += [ours[words[0]]] if words[0] in ours else []
        else:
            faults.append(f"bad_words_ids must hold single tokens, but one entry is {words!r}")
    forced = fields.take("forced_bos_token_id")
    prefix = (ours[forced],) if isinstance(forced, int) and forced in ours else ()
    suppressed = fields.take("suppress_tokens") or ()
    banned += [ours[one] for one in suppressed if isinstance(one, int) and one in ours]
    longest = max(1, min(most, longest))
    try:
        return SearchOptions(
            beam_size=beam,
            length_penalty=penalty,
            max_length=longest,
            min_length=min(least, longest),
            no_repeat_ngram_size=repeated,
            suppressed=tuple(sorted(set(banned) - {EOS})),
            prefix=prefix,
        )
    except OptionError as error:
        faults.append(f"generation_config.json or config.json: {error}")
        return SearchOptions()
