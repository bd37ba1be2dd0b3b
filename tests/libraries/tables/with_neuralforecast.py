"""neuralforecast: series of numbers."""

# SPDX-License-Identifier: Apache-2.0

import numpy
import pandas
from neuralforecast import NeuralForecast
from neuralforecast.models import LSTM, NBEATS, NHITS
from uses import main, use


@use("forecast with NBEATS, NHITS and LSTM")
def forecast():
    rows = pandas.DataFrame(
        {
            "unique_id": "one",
            "ds": pandas.date_range("2020-01-01", periods=60, freq="D"),
            "y": numpy.sin(numpy.arange(60) / 3),
        }
    )
    quiet = {
        "max_steps": 2,
        "accelerator": "cpu",
        "enable_progress_bar": False,
        "logger": False,
        "enable_checkpointing": False,
        "enable_model_summary": False,
    }
    models = [
        NBEATS(h=4, input_size=8, mlp_units=[[8, 8]] * 3, **quiet),
        NHITS(h=4, input_size=8, mlp_units=[[8, 8]] * 3, **quiet),
        LSTM(h=4, input_size=8, encoder_hidden_size=8, decoder_hidden_size=8, **quiet),
    ]
    runner = NeuralForecast(models=models, freq="D")
    runner.fit(rows)
    found = runner.predict()
    return [list(found.shape), bool(numpy.isfinite(found[["NBEATS", "NHITS", "LSTM"]]).all().all())]


if __name__ == "__main__":
    main("neuralforecast")
