"""The names that programs mention and that do not work here: see the package.

MISSING has, for each reason, modules by their path without the package ("" is the package), and
their names. A name that begins with a capital letter is a class, or an exception where it ends with
Error; others are functions. VALUES has those that are neither, by full path.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Dict


def _never() -> bool:
    """Whether it can be used here: it cannot."""
    return False


def _never_ready(func: Any) -> Any:
    """Decorates what needs a group of processes that call one another: it is never there."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("rpc: expected a call of init_rpc(), which does not exist here")

    return refuse


def _never_is(tensor: Any) -> bool:
    """Whether a tensor is of a kind that is not made here: it is not."""
    return False


# Modules of this package by the names that pickles from before may have for them.
MOVED_MODULES: Dict[str, str] = {
    "_batch_norm_out": "_functions.batch_norm_out",
    "_checks": "_functions.checks",
    "_checkpoint_names": "serialization._safe_globals",
    "_compile": "compiler._compile",
    "_dtypes": "_tensor.type_info",
    "_exception_wrapper": "utils._exception_wrapper",
    "_explain": "_introspection.explain",
    "_facts": "_introspection.build",
    "_linear_algebra": "_functions.linear_algebra",
    "_older_functions": "_functions.older",
    "_scaled_products": "_functions.scaled_products",
    "_schema": "_introspection.schema",
    "_switches": "_functions.settings",
    "_symbolic": "_functions.symbolic",
    "_tags": "_introspection.tags",
    "_variadic": "_functions.variadic",
    "backends._streams": "_device.streams",
}

# Modules that are others by an older name, or have some of their names; so with all below them.
SAME_MODULES: Dict[str, str] = {
    "ao.nn.intrinsic.modules": "ao.nn.intrinsic",
    "ao.nn.intrinsic.qat.modules": "ao.nn.intrinsic.qat",
    "ao.nn.intrinsic.quantized.modules": "ao.nn.intrinsic.quantized",
    "ao.nn.qat.modules": "ao.nn.qat",
    "ao.nn.quantized.dynamic.modules": "ao.nn.quantized.dynamic",
    "ao.nn.quantized.modules": "ao.nn.quantized",
    "cuda.amp.autocast_mode": "cuda.amp",
    "cuda.amp.common": "cuda.amp",
    "cuda.amp.grad_scaler": "cuda.amp",
    "distributed.nn.api.remote_module": "distributed.nn",
    "distributed.rpc.api": "distributed.rpc",
    "export.exported_program": "export",
    "masked.maskedtensor.creation": "masked.maskedtensor.core",
    "nn.intrinsic": "ao.nn.intrinsic",
    "nn.qat": "ao.nn.qat",
    "nn.quantizable": "ao.nn.quantizable",
    "nn.quantized": "ao.nn.quantized",
    "quantization": "ao.quantization",
    "sparse.semi_structured": "sparse",
    "utils.data._utils.fetch": "utils.data.fetch",
    "utils.data._utils.pin_memory": "utils.data.pinning",
    "utils.data._utils.worker": "utils.data.worker",
}

VALUES: Dict[str, Any] = {
    **dict.fromkeys(("mtia.default_generators", "xpu.default_generators"), ()),
    "_C._distributed_rpc._is_current_rpc_agent_set": _never,
    "_dynamo.eval_frame.is_dynamo_supported": _never,
    "utils._triton.has_triton": _never,
    "utils._triton.has_triton_package": _never,
    "_subclasses.fake_tensor.is_fake": _never_is,
    "_subclasses.fake_tensor.unset_fake_temporarily": contextlib.nullcontext,
    "fx.experimental.validator.translation_validation_enabled": _never,
    "_C._functorch.is_batchedtensor": _never_is,
    "_C._functorch.is_functorch_wrapped_tensor": _never_is,
    "_C._functorch.is_gradtrackingtensor": _never_is,
    "distributed.autograd.is_available": _never,
    "distributed.rpc._require_initialized": _never_ready,
    "distributed.rpc.is_available": _never,
    "mps.profiler.is_capturing_metal": _never,
    "mps.profiler.is_metal_capture_enabled": _never,
    "mtia.is_available": _never,
    "mtia.is_initialized": _never,
    "xpu.is_current_stream_capturing": _never,
    "xpu.is_tf32_supported": _never,
}

MISSING: Dict[str, Dict[str, str]] = {
    "a module is on one device; processes work together by torch.distributed": {
        "cuda.comm": "broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter",
        "nn.parallel.comm": (
            "broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter"
        ),
    },
    "a process does not call functions in another": {
        "distributed.rpc": (
            "AllGatherStates BackendType RRef TensorPipeRpcBackendOptions _all_gather _barrier "
            "_wait_all enable_gil_profiling get_rpc_timeout get_worker_info init_rpc "
            "method_factory new_method remote rpc_async rpc_sync shutdown"
        ),
        "distributed.rpc.functions": "async_execution",
    },
    "attention has one implementation": {
        "nn.attention": (
            "activate_flash_attention_impl current_flash_attention_impl "
            "list_flash_attention_impls register_flash_attention_impl "
            "restore_flash_attention_impl"
        ),
    },
    "programs run as they are written": {
        "_ops": "HigherOrderOperator",
        "_subclasses": "FakeTensor FakeTensorMode",
        "_subclasses.fake_tensor": "FakeTensor FakeTensorMode",
        "_subclasses.functional_tensor": "FunctionalTensor FunctionalTensorMode",
        "_subclasses.meta_utils": "MetaConverter",
        "fx.experimental.recording": (
            "FakeTensorMeta NotEqualError ShapeEnvEvent record_shapeenv_event "
            "replay_shape_env_events shape_env_check_state_equal"
        ),
        "fx.experimental.sym_node": "SymNode",
        "fx.experimental.symbolic_shapes": "ShapeEnv",
        "fx.experimental.validator": (
            "BisectValidationException ValidationException translation_validation_timeout"
        ),
    },
    "it splits graphs for the compiler of a device": {
        "fx.passes.net_min_base": (
            "FxNetMinimizerBadModuleError FxNetMinimizerResultMismatchError "
            "FxNetMinimizerRunFuncError"
        ),
    },
    "a nested tensor is its values and offsets, without a view between them": {
        "nested._internal.nested_tensor": "ViewBufferFromNested ViewNestedFromBuffer",
        "nested._internal.ops": "extract_kwargs",
    },
    "vmap computes each sample by itself": {
        "_C._functorch": (
            "_add_batch_dim _remove_batch_dim _unwrap_batched _wrap_for_grad _unwrap_for_grad "
            "_wrap_functional_tensor current_level get_unwrapped maybe_get_bdim maybe_get_level"
        ),
        "_functorch.vmap": (
            "_add_batch_dim _create_batched_inputs _maybe_remove_batch_dim "
            "_process_batched_inputs _remove_batch_dim _unwrap_batched"
        ),
    },
    "control flow is Python's own": {
        "": "cond while_loop",
    },
    "tensors in a file are read without Python's pickle": {
        "utils.show_pickle": "DumpUnpickler FakeClass FakeObject main",
    },
    "it belongs to one library for one device; convolution and similar operators choose theirs": {
        "": (
            "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt "
            "batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats "
            "batch_norm_update_stats cudnn_affine_grid_generator cudnn_batch_norm "
            "cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu "
            "cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable miopen_batch_norm "
            "miopen_convolution miopen_convolution_add_relu miopen_convolution_relu "
            "miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn "
            "mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights "
            "mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer"
        ),
    },
    "it is part of TorchScript's compiler, which Treadle does not have": {
        "": (
            "AliasDb Argument ArgumentSpec BenchmarkConfig BenchmarkExecutionStats Block "
            "BufferDict CallStack Capsule Code CompleteArgumentSpec ConcreteModuleType "
            "ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext "
            "ExecutionPlan Gradient GraphExecutorState IODescriptor InferredType JITException "
            "LiteScriptModule LockingLogger LoggerBase ModuleDict NoopLogger OperatorInfo "
            "ParameterDict ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator "
            "ScriptDictKeyIterator ScriptList ScriptListIterator ScriptMethod "
            "ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext "
            "StaticModule ThroughputBenchmark Use import_ir_module import_ir_module_from_buffer "
            "parse_ir parse_schema"
        ),
        "jit": (
            "ONNXTracedModule RecursiveScriptClass ScriptWarning TopLevelTracedModule "
            "TracingCheckError export_opnames jit_module_from_flatbuffer "
            "last_executed_optimized_graph save_jit_module_to_flatbuffer"
        ),
        "jit.quantized": "quantize_linear_modules quantize_rnn_cell_modules quantize_rnn_modules",
        "utils": "ThroughputBenchmark",
        "utils.bundled_inputs": (
            "InflatableArg ListType TupleType augment_many_model_functions_with_bundled_inputs "
            "augment_model_with_bundled_inputs bundle_inputs bundle_large_tensor bundle_randn"
        ),
        "utils.mobile_optimizer": "LintCode generate_mobile_module_lints optimize_for_mobile",
        "utils.model_dump": (
            "burn_in_info get_info_and_burn_skeleton get_inline_skeleton get_model_info "
            "get_storage_info hierarchical_pickle main"
        ),
        "utils.throughput_benchmark": "ExecutionStats ThroughputBenchmark",
    },
    "Treadle does not turn programs into graphs that it could write as ONNX": {
        "onnx": "ExportableModule InputObserver JitScalarType ONNXProgram TensorProtoDataType",
        "onnx.errors": "OnnxExporterError SymbolicValueError UnsupportedOperatorError",
        "onnx.utils": "export",
        **{f"onnx.symbolic_opset{version}": "" for version in range(7, 21)},
    },
    "Treadle has no sparse tensors of a fixed pattern, and solves no sparse systems": {
        "sparse": (
            "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT "
            "SparseSemiStructuredTensorCUTLASS spsolve to_sparse_semi_structured"
        ),
    },
    "processes do not share device memory": {
        "distributed._symmetric_memory": (
            "empty enable_symm_mem_for_group get_symm_mem_workspace rendezvous"
        ),
    },
    "the profiler does not take profiles of this kind": {
        "profiler": "CuspyConfig PerformanceMetricsConfig ProfilerActivityConfig",
        "profiler.profiler": "CuspyConfig PerformanceMetricsConfig ProfilerActivityConfig",
    },
    "programs are not exported": {
        "_export": "capture_pre_autograd_graph",
        "export": (
            "AdditionalInputs CustomDecompTable Dim ExportBackwardSignature ExportGraphSignature "
            "ExportedProgram FlatArgsAdapter ModuleCallEntry ModuleCallSignature PassResult "
            "ShapesCollection UnflattenedModule default_decompositions dims draft_export export "
            "load register_dataclass save unflatten"
        ),
        "export.dynamic_shapes": (
            "AdditionalInputs Dim KeyPath ShapesCollection dims "
            "refine_dynamic_shapes_from_suggested_fixes"
        ),
        "export.passes": "move_to_device_pass",
    },
    "programs are not packed with their models": {
        "package": (
            "Directory EmptyMatchError GlobGroup Importer ObjMismatchError ObjNotFoundError "
            "OrderedImporter PackageExporter PackageImporter PackagingError is_from_package"
        ),
        "package.analyze": "find_first_use_of_broken_modules is_from_package trace_dependencies",
        "package.file_structure_representation": "Directory",
        "package.find_file_dependencies": "find_files_source_depends_on",
        "package.glob_group": "GlobGroup",
        "package.importer": "Importer ObjMismatchError ObjNotFoundError OrderedImporter",
        "package.package_exporter": "EmptyMatchError PackageExporter PackagingError",
        "package.package_importer": "PackageImporter",
    },
    "sizes are always numbers, since programs run as they are written": {
        "": (
            "SymBool SymFloat SymInt sym_constrain_range sym_constrain_range_for_size "
            "sym_fresh_size"
        ),
    },
    "tensors are saved by torch.save() and read by torch.load()": {
        "": "PyTorchFileReader PyTorchFileWriter",
    },
    "tensors are on the CPU, on CUDA devices and on those of plug-ins": {
        "mps": (
            "Stream compile_shader current_stream default_stream load_metallib set_stream stream"
        ),
        "mps.event": "Event",
        "mps.profiler": "metal_capture profile start stop",
        "mps.streams": "Stream current_stream default_stream set_stream stream",
        "mtia.mtia_graph": "MTIAGraph graph graph_pool_handle is_current_stream_capturing",
        "xpu": (
            "MemPool StreamContext XPUGraph XPUPluggableAllocator can_device_access_peer "
            "change_current_allocator clock_rate device device_memory_used device_of "
            "get_arch_list get_gencode_flags get_per_process_memory_fraction get_rng_state_all "
            "get_stream_from_external graph graph_pool_handle list_gpu_processes "
            "make_graphed_callables memory_snapshot memory_stats memory_stats_as_nested_dict "
            "memory_usage power_draw reset_accumulated_memory_stats "
            "set_per_process_memory_fraction set_rng_state_all set_stream stream temperature "
            "use_mem_pool utilization"
        ),
        "xpu.graphs": (
            "XPUGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables"
        ),
        "xpu.memory": (
            "MemPool XPUPluggableAllocator change_current_allocator empty_cache "
            "get_per_process_memory_fraction is_initialized list_gpu_processes "
            "max_memory_allocated max_memory_reserved mem_get_info memory_allocated "
            "memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict "
            "reset_accumulated_memory_stats reset_peak_memory_stats "
            "set_per_process_memory_fraction use_mem_pool"
        ),
        "xpu.random": (
            "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed "
            "seed_all set_rng_state set_rng_state_all"
        ),
        "xpu.streams": "Event Stream",
    },
    "quantization has no such function, layer or observer": {
        "": (
            "QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage "
            "choose_qparams_optimized empty_quantized fbgemm_linear_fp16_weight "
            "fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight "
            "fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight "
            "fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix quantized_batch_norm "
            "quantized_gru quantized_gru_cell quantized_lstm quantized_lstm_cell "
            "quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d "
            "quantized_rnn_relu_cell quantized_rnn_tanh_cell"
        ),
        "ao.nn.intrinsic": "ConvAdd2d ConvAddReLU2d LinearLeakyReLU LinearTanh",
        "ao.nn.quantizable": "LSTM LSTMCell MultiheadAttention",
        "ao.nn.quantized": (
            "ConvTranspose1d ConvTranspose2d ConvTranspose3d LSTM MultiheadAttention"
        ),
        "ao.pruning": (
            "BaseScheduler BaseSparsifier CubicSL FakeSparsity LambdaSL NearlyDiagonalSparsifier "
            "WeightNormSparsifier fqn_to_module get_arg_info_from_tensor_fqn "
            "get_dynamic_sparse_quantized_mapping get_static_sparse_quantized_mapping "
            "module_to_fqn"
        ),
        "ao.quantization": (
            "AffineQuantizedObserverBase Granularity MappingType PerAxis PerBlock PerGroup PerRow "
            "PerTensor PerToken TorchAODType ZeroPointDomain convert_dynamic_jit convert_jit "
            "fuse_conv_bn_jit get_block_size get_default_dynamic_sparse_quant_module_mappings "
            "get_default_float_to_quantized_operator_mappings "
            "get_default_static_quant_reference_module_mappings "
            "get_default_static_sparse_quant_module_mappings get_fuser_method_new "
            "get_quantized_operator prepare_dynamic_jit prepare_jit quantize_dynamic_jit "
            "quantize_jit script_qconfig script_qconfig_dict"
        ),
        "ao.quantization.quantize_fx": "convert_to_reference_fx",
        "ao.quantization.quantizer": "Quantizer",
    },
    "there is no backend for such devices": {
        "mtia": (
            "DeferredMtiaCallError Event MTIAGraph Stream StreamContext "
            "attach_out_of_memory_observer current_device current_stream default_stream device "
            "device_count empty_cache get_device_capability get_device_properties get_rng_state "
            "get_rng_state_all graph graph_pool_handle init initial_seed is_bf16_supported "
            "is_current_stream_capturing manual_seed manual_seed_all max_memory_allocated "
            "memory_allocated memory_stats record_memory_history reset_peak_memory_stats seed "
            "seed_all set_device set_rng_state set_rng_state_all set_stream snapshot stream "
            "synchronize"
        ),
        "mtia.memory": (
            "is_initialized max_memory_allocated memory_allocated memory_stats "
            "reset_peak_memory_stats"
        ),
    },
    "Treadle does not have this part of the library": {
        "_C._distributed_c10d": (
            "FakeProcessGroup FileStore HashStore PrefixStore ProcessGroup ReduceOp Store "
            "TCPStore Work"
        ),
    },
    "there are no remote procedure calls, and no optimizers without state": {
        "distributed.optim": "DistributedOptimizer as_functional_optim",
    },
    "sharded parameters are DTensors, not parts of one flat tensor": {
        "distributed.fsdp": "DataParallelMeshDims FlatParameter GradientReductionHandle",
        "distributed.fsdp._common_utils": "FSDPState TrainingState _FSDPState",
        "distributed.fsdp._flat_param": "FlatParameter",
        "distributed.fsdp._fsdp_param_group": "FSDPParamGroup",
        "distributed.fsdp._runtime_utils": "_lazy_init",
        "distributed.fsdp._unshard_param_utils": "_unshard_fsdp_state_params",
    },
    "a checkpoint is a folder of files in PyTorch's format, and its parts have other names": {
        "distributed.checkpoint": (
            "QuantizedHuggingFaceStorageReader load_sharded_optimizer_state_dict"
        ),
        "distributed.checkpoint.optimizer": "load_sharded_optimizer_state_dict",
        "distributed.checkpoint.state_dict": (
            "DictValueType FQNS_T ListDictValueType OptimizerStateType"
        ),
    },
    "the parts of process groups are others": {
        "distributed": (
            "Logger ProcessGroupGloo ProcessGroupNCCL ProcessGroupNCCL2 ProcessGroupNCCLLazy "
            "Reducer breakpoint"
        ),
        "distributed._composable": "checkpoint contract replicate",
        "distributed._shard.sharded_tensor": "Shard ShardedTensor ShardedTensorMetadata",
        "distributed._shard.sharded_tensor.api": "ShardedTensor",
        "distributed._state_dict_utils": (
            "_broadcast_tensors _distribute_tensors _offload_state_dict_to_cpu"
        ),
        "distributed.collective_utils": (
            "SyncPayload all_gather all_gather_object_enforce_type broadcast"
        ),
        "distributed.device_mesh": "BackendConfig",
        "distributed.nn": "RemoteModule",
        "distributed.utils": "_get_device_index _sync_module_states _to_kwargs",
    },
    "a pipeline has only the schedules of its page": {
        "distributed.pipelining": (
            "PipelineActivationLiveness analyze_pipeline_activation_liveness"
        ),
    },
}
