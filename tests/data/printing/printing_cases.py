"""Values whose text is compared with PyTorch's, as expressions over `torch`, `nn`, `inf` and `nan`.

CASES: by name the expression, or the expression and options of `printoptions` around it. The
text that PyTorch 2.9.1 shows is in expected.json, which generate.py writes.
"""

# SPDX-License-Identifier: Apache-2.0

# Programs that some expressions need.
SETUP = """
import collections, math
T = torch.tensor
R = torch.arange
def grad(x):
    return x.requires_grad_()
class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(3))
        self.register_buffer("offset", torch.zeros(2))
        self.children_of = nn.ModuleList([nn.Linear(1, 2), nn.Sequential(nn.ReLU())])
    def extra_repr(self):
        return "factor=3, of=\\n"
class Empty(nn.Module):
    pass
class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        named = [("one", nn.Linear(1, 1)), ("two", Empty())]
        self.a = nn.Sequential(collections.OrderedDict(named))
        self.b = None
        self.c = nn.ModuleDict({"x": nn.Conv1d(1, 1, 1), "y": nn.Identity()})
"""

_DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
           "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]  # fmt: skip

CASES: dict = {}
for _d in _DTYPES:
    CASES[f"{_d} values"] = f"T([[0, 1], [1, 0]]).to(torch.{_d})"
    CASES[f"{_d} scalar"] = f"T(1).to(torch.{_d})"
    CASES[f"{_d} empty"] = f"torch.empty(0, dtype=torch.{_d})"
    CASES[f"{_d} empty 2d"] = f"torch.empty(2, 0, dtype=torch.{_d})"

_VALUES = {
    # numbers
    "whole": "T([1., 2., 3.])",
    "whole negative": "T([-1., 20., 300.])",
    "fractions": "T([0.1, 0.25, -3.75])",
    "mixed widths": "T([1.5, 22.25, 333.125])",
    "small": "T([1e-4, 2e-4])",
    "smaller": "T([1e-5, 2e-5])",
    "wide spread": "T([1e-3, 1e3])",
    "spread of 1000": "T([1., 1000.5])",
    "spread above 1000": "T([1., 1000.5, 1001.])",
    "whole spread": "T([1., 100000.])",
    "large": "T([1e8, 2e8])",
    "larger": "T([1.5e8, 2e8])",
    "huge": "T([3.4e38, -3.4e38])",
    "tiny": "T([1e-45, 1e-38])",
    "zero": "T([0., -0.])",
    "zero and small": "T([0., 1e-6])",
    "inf": "T([inf])",
    "nan": "T([nan])",
    "inf nan whole": "T([inf, -inf, nan, 1.])",
    "inf nan fraction": "T([inf, -inf, nan, 1.5])",
    "inf nan scientific": "T([inf, nan, 1e-8, 1e8])",
    "negative nan": "T([-nan, -inf])",
    "rounds up": "T([0.99999, 9.99995])",
    "rounds to whole": "T([0.00001, 1.0])",
    "double": "T([1/3, 2/3], dtype=torch.float64)",
    "double scientific": "T([1e-300, 1e300], dtype=torch.float64)",
    "half": "T([0.1, 65504.], dtype=torch.float16)",
    "bfloat16": "T([0.1, 3e38], dtype=torch.bfloat16)",
    "ints of widths": "T([[1, -20], [300, 4000000]])",
    "int extremes": "T([-2**63, 2**63 - 1])",
    "uint8 all": "R(0, 256, 51, dtype=torch.uint8)",
    "uint64 max": "T([0, 2**64 - 1], dtype=torch.uint64)",
    "bools": "T([[True, False], [False, True]])",
    # scalars
    "scalar float": "T(3.14159265)",
    "scalar whole": "T(3.)",
    "scalar small": "T(1e-10)",
    "scalar large": "T(123456789.)",
    "scalar 1e8": "T(1e8)",
    "scalar nan": "T(nan)",
    "scalar inf": "T(-inf)",
    "scalar int": "T(-7)",
    "scalar bool": "T(False)",
    "scalar double": "T(0.1, dtype=torch.float64)",
    "scalar complex": "T(1 + 2j)",
    "scalar grad": "T(1.5, requires_grad=True)",
    # complex
    "complex whole": "T([1 + 2j, -3 - 4j])",
    "complex fraction": "T([1.5 + 2j, 3 - 4.25j])",
    "complex wide": "T([1 + 1e5j, 3e-5 + 2j])",
    "complex zero": "T([0j, 1j, -1j])",
    "complex nan": "T([complex(nan, inf), complex(-inf, nan)])",
    "complex double": "T([1/3 + 2j/3], dtype=torch.complex128)",
    "complex matrix": "T([[1j, 2 + 10j], [100 - 1j, 4]])",
    "complex grad": "grad(T([1 + 1j])) * 2",
    # shapes
    "matrix": "R(6.).reshape(2, 3)",
    "cube": "R(24).reshape(2, 3, 4)",
    "four dims": "R(16.).reshape(2, 2, 2, 2)",
    "one column": "R(4).reshape(4, 1)",
    "one by one by one": "T([[[5]]])",
    "five dims": "R(8).reshape(2, 1, 2, 1, 2)",
    "empty middle": "torch.zeros(2, 0, 3)",
    "long row": "R(40)",
    "long row of floats": "R(40.) / 3",
    "long rows": "(R(60) * 1000).reshape(2, 30)",
    "fills the line": "R(18)",
    "transposed": "R(6).reshape(2, 3).t()",
    "expanded": "T([1.5]).expand(2, 3)",
    "strided": "R(20)[::3]",
    # summaries
    "1000 elements": "R(1000)",
    "1001 elements": "R(1001)",
    "summary of floats": "R(2000.) / 7",
    "summary matrix": "R(3000).reshape(50, 60)",
    "summary of a few rows": "R(3000).reshape(3, 1000)",
    "summary of a few columns": "R(3000).reshape(1000, 3)",
    "summary cube": "R(8000.).reshape(20, 20, 20)",
    "summary four dims": "R(4096).reshape(8, 8, 8, 8)",
    "summary with inf": "torch.cat([T([inf]), R(2000.)])",
    "summary hides inf": "torch.cat([R(1000.), T([inf]), R(1000.)])",
    "summary complex": "torch.complex(R(1200.), R(1200.))",
    "summary double": "torch.ones(1100, dtype=torch.float64)",
    "summary bool": "R(1500) % 2 == 0",
    "summary grad": "grad(R(1500.)) * 2",
    "summary column": "R(1200).reshape(1200, 1)",
    # suffixes
    "leaf": "grad(R(3.))",
    "leaf double": "grad(T([1.], dtype=torch.float64))",
    "computed": "grad(R(3.)) * 2",
    "sum": "grad(R(3.)).sum()",
    "view": "grad(R(6.)).view(2, 3)",
    "matmul": "grad(torch.eye(2)) @ torch.eye(2)",
    "relu": "torch.relu(grad(R(3.) - 1))",
    "linear": "nn.functional.linear(torch.ones(1, 2), grad(torch.ones(1, 2)))",
    "conv": "nn.functional.conv2d(torch.ones(1, 1, 2, 2), grad(torch.ones(1, 1, 2, 2)))",
    "cross entropy": "nn.functional.cross_entropy(grad(torch.zeros(1, 2)), T([0]))",
    "mse": "nn.functional.mse_loss(grad(torch.zeros(2)), torch.ones(2))",
    "softmax": "grad(torch.zeros(2)).softmax(0)",
    "indexed": "grad(R(5.))[1:3]",
    "selected": "grad(R(5.))[2]",
    "gathered": "grad(R(5.))[T([0, 3])]",
    "stacked": "torch.stack([grad(R(2.)), R(2.)])",
    "in place": "(grad(R(2.)) * 1).add_(1)",
    "exp": "grad(R(2.)).exp()",
    "pow": "grad(R(2.)) ** 2",
    "division": "grad(R(2.)) / 3",
    "mean": "grad(R(4.)).mean()",
    "transpose": "grad(torch.ones(1, 2)).t()",
    "clone": "grad(R(2.)).clone()",
    "to double": "grad(R(2.)).double()",
    "long suffix": "grad(torch.ones(3, 7) / 3) + 1",
    "suffix on a new line": "grad(torch.ones(1, 7, dtype=torch.float64) / 3) * 1",
    "detached": "(grad(R(2.)) * 2).detach()",
    "meta": "torch.empty(2, 3, device='meta')",
    "meta double": "torch.empty(2, dtype=torch.float64, device='meta')",
    "meta grad": "torch.empty(2, device='meta', requires_grad=True)",
    "meta scalar": "torch.empty((), dtype=torch.int64, device='meta')",
    "parameter": "nn.Parameter(R(3.))",
    "parameter frozen": "nn.Parameter(R(4.).reshape(2, 2), requires_grad=False)",
    "parameter empty": "nn.Parameter(torch.empty(0))",
    "buffer": "nn.Buffer(R(3.))",
    "list": "[T([1.]), T(2)]",
    "dictionary": "{'a': T([[1., 2.]])}",
    # other objects
    "size": "torch.Size([2, 3])",
    "size empty": "torch.Size([])",
    "shape": "torch.ones(2, 3).shape",
    "dtype": "torch.float32",
    "dtypes": "[torch.int64, torch.bool, torch.complex64, torch.bfloat16]",
    "device": "torch.device('cpu')",
    "device with number": "torch.device('cuda', 1)",
    "layout": "torch.strided",
    "memory format": "[torch.contiguous_format, torch.channels_last]",
    "finfo": "torch.finfo(torch.float32)",
    "finfo half": "torch.finfo(torch.bfloat16)",
    "iinfo": "torch.iinfo(torch.int16)",
    "sort": "T([3, 1, 2]).sort()",
    "max": "T([[1., 5.], [7., 3.]]).max(1)",
    "topk": "T([1., 5., 7.]).topk(2)",
    "qr": "torch.linalg.qr(torch.eye(1))",
    "grad mode": "torch.is_grad_enabled()",
    # modules
    "linear module": "nn.Linear(3, 4)",
    "linear without bias": "nn.Linear(3, 4, bias=False)",
    "bilinear module": "nn.Bilinear(2, 3, 4)",
    "conv1d": "nn.Conv1d(1, 2, 3)",
    "conv2d": "nn.Conv2d(3, 6, (3, 5), stride=2, padding=1, dilation=2, groups=3, bias=False)",
    "conv2d reflect": "nn.Conv2d(1, 2, 3, padding='same', padding_mode='reflect')",
    "conv transposed": "nn.ConvTranspose2d(1, 2, 3, output_padding=1, stride=2)",
    "conv3d": "nn.Conv3d(1, 2, 3)",
    "batch norm": "nn.BatchNorm2d(3, momentum=None)",
    "batch norm plain": "nn.BatchNorm1d(3, affine=False, track_running_stats=False)",
    "layer norm": "nn.LayerNorm([2, 3], elementwise_affine=False)",
    "group norm": "nn.GroupNorm(2, 4)",
    "instance norm": "nn.InstanceNorm2d(3)",
    "rms norm": "nn.RMSNorm(4)",
    "max pool": "nn.MaxPool2d(2, padding=1)",
    "avg pool": "nn.AvgPool2d((2, 3), stride=1)",
    "adaptive pool": "nn.AdaptiveAvgPool2d((1, None))",
    "lp pool": "nn.LPPool2d(2, 3)",
    "dropout": "nn.Dropout(0.25, inplace=True)",
    "relu module": "nn.ReLU(inplace=True)",
    "leaky relu": "nn.LeakyReLU(0.2)",
    "gelu": "nn.GELU('tanh')",
    "elu": "nn.ELU()",
    "prelu": "nn.PReLU(3)",
    "softplus": "nn.Softplus()",
    "softmax module": "nn.Softmax(dim=1)",
    "hardtanh": "nn.Hardtanh(-2, 2)",
    "threshold": "nn.Threshold(0.1, 20)",
    "sigmoid": "nn.Sigmoid()",
    "flatten": "nn.Flatten()",
    "unflatten": "nn.Unflatten(1, (2, 3))",
    "embedding": "nn.Embedding(10, 3, padding_idx=0, max_norm=1.0)",
    "embedding bag": "nn.EmbeddingBag(10, 3, mode='sum')",
    "lstm": "nn.LSTM(3, 4, num_layers=2, bidirectional=True, dropout=0.5)",
    "gru": "nn.GRU(3, 4, batch_first=True)",
    "rnn": "nn.RNN(3, 4, nonlinearity='relu')",
    "lstm cell": "nn.LSTMCell(3, 4)",
    "attention": "nn.MultiheadAttention(4, 2)",
    "encoder layer": "nn.TransformerEncoderLayer(4, 2, 8)",
    "encoder": "nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)",
    "decoder layer": "nn.TransformerDecoderLayer(4, 2, 8)",
    "upsample": "nn.Upsample(scale_factor=2, mode='bilinear')",
    "upsample size": "nn.Upsample(size=(2, 3))",
    "pixel shuffle": "nn.PixelShuffle(2)",
    "zero pad": "nn.ZeroPad2d(1)",
    "constant pad": "nn.ConstantPad1d((1, 2), 3.5)",
    "reflection pad": "nn.ReflectionPad2d(1)",
    "unfold": "nn.Unfold(2)",
    "cross entropy module": "nn.CrossEntropyLoss(label_smoothing=0.1)",
    "mse module": "nn.MSELoss()",
    "identity": "nn.Identity(3, a=4)",
    "empty module": "Empty()",
    "sequential": "nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Sequential(nn.Linear(2, 1)))",
    "empty sequential": "nn.Sequential()",
    "module list": "nn.ModuleList([nn.Linear(1, 2) for _ in range(3)] + [nn.ReLU()])",
    "module list alternating": "nn.ModuleList([nn.Linear(1, 2), nn.ReLU(), nn.Linear(1, 2)])",
    "module dict": "nn.ModuleDict({'a': nn.Linear(1, 2), 'b': nn.ReLU()})",
    "parameter list": "nn.ParameterList([torch.ones(2), nn.Parameter(torch.ones(2, 3))])",
    "parameter dict": "nn.ParameterDict({'a': torch.ones(2)})",
    "module of the program": "Scale()",
    "nested": "Nested()",
    "lazy linear": "nn.LazyLinear(3)",
    "weight norm": "nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))",
    "sgd": "torch.optim.SGD([torch.ones(1)], lr=0.1, momentum=0.9)",
    "adam": "torch.optim.Adam([{'params': [torch.ones(1)]}, {'params': [torch.ones(2)], 'lr': 1}])",
}
CASES.update(_VALUES)

_PI = "T([math.pi, 1000 * math.pi])"
for _name, _options, _expression in [
    ("precision 2", {"precision": 2}, _PI),
    ("precision 8", {"precision": 8}, _PI),
    ("precision 0", {"precision": 0}, "T([1.5, 2.5])"),
    ("precision 0 whole", {"precision": 0}, "T([1., 2.])"),
    ("sci mode on", {"sci_mode": True}, "T([1., 2.5, 300.])"),
    ("sci mode on whole", {"sci_mode": True}, "T([1., 2.])"),
    ("sci mode off", {"sci_mode": False}, "T([1e-6, 1e6, 1.5])"),
    ("sci mode off whole", {"sci_mode": False}, "T([1., 1e9])"),
    ("sci mode on precision 1", {"sci_mode": True, "precision": 1}, _PI),
    ("sci mode with inf", {"sci_mode": True}, "T([inf, nan, 2.])"),
    ("sci mode off with inf", {"sci_mode": False}, "T([inf, nan, 2e9, 0.5])"),
    ("threshold 5", {"threshold": 5}, "R(6)"),
    ("threshold 6", {"threshold": 6}, "R(6)"),
    ("threshold 5 matrix", {"threshold": 5, "edgeitems": 1}, "R(20).reshape(4, 5)"),
    ("edgeitems 1", {"edgeitems": 1, "threshold": 10}, "R(50.)"),
    ("edgeitems 5", {"edgeitems": 5}, "R(2000)"),
    ("linewidth 40", {"linewidth": 40}, "R(30)"),
    ("linewidth 200", {"linewidth": 200}, "R(40)"),
    ("linewidth 40 grad", {"linewidth": 40}, "grad(R(9.)) * 2"),
    ("linewidth 1", {"linewidth": 1}, "R(3)"),
    ("profile short", {"profile": "short"}, "R(2000.) / 7"),
    ("profile full", {"profile": "full"}, "R(1001)"),
    ("profile default", {"profile": "default"}, _PI),
    ("profile and precision", {"profile": "short", "precision": 1}, _PI),
    ("complex precision", {"precision": 2}, "T([1/3 + 2j/3])"),
    ("complex sci mode", {"sci_mode": True}, "T([1 + 2j])"),
]:
    CASES[f"options: {_name}"] = (_expression, _options)


def text_of(case, torch) -> str:
    """The text that a library shows for a case."""
    names = {"torch": torch, "nn": torch.nn, "inf": float("inf"), "nan": float("nan")}
    exec(SETUP, names)
    expression, options = case if isinstance(case, tuple) else (case, {})
    value = eval(expression, names)
    if not options:
        return repr(value)
    try:
        torch.set_printoptions(**options)
        return repr(value)
    finally:
        torch.set_printoptions(profile="default", sci_mode=None)
