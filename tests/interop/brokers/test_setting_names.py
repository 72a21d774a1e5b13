"""The names of settings that are known are those that RocketMQ's configuration classes have setters for."""

from __future__ import annotations

import re
import subprocess

import pytest

from seglog.broker.settings.rocketmq_keys import ROCKETMQ_KEYS
from tests.interop.judging import toolchain

pytestmark = pytest.mark.interop

CLASSES = (
    "common.BrokerConfig",
    "common.BrokerIdentity",
    "store.config.MessageStoreConfig",
    "remoting.netty.NettyServerConfig",
    "remoting.netty.NettyClientConfig",
    "auth.config.AuthConfig",
)
"""What ``BrokerStartup.java`` has ``MixAll.properties2Object`` fill."""
SETTER = re.compile(r"public void set([A-Z]\w*)\(")


@pytest.mark.usefixtures("judge")
def test_each_name_is_a_setter_and_each_setter_is_a_name():
    javap = toolchain.jdk_tool("javap")
    assert javap is not None
    told = subprocess.run(
        [
            javap,
            "-cp",
            toolchain.build(toolchain.DEFAULT_VERSION),
            *(f"org.apache.rocketmq.{name}" for name in CLASSES),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    setters = {name[0].lower() + name[1:] for name in SETTER.findall(told)}
    assert setters == ROCKETMQ_KEYS
