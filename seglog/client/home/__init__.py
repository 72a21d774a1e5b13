"""Homes: the one thread or loop that may change a client's state, and the timers that run there.

Called by clients and their links.
Truth: none.
"""

from seglog.client.home.at_once import run_at_once as run_at_once
from seglog.client.home.flows import Bell as Bell
from seglog.client.home.flows import Flow as Flow
from seglog.client.home.flows import Steps as Steps
from seglog.client.home.flows import late as late
from seglog.client.home.flows import rest as rest
from seglog.client.home.flows import sleep as sleep
from seglog.client.home.flows import start as start
from seglog.client.home.flows import until as until
from seglog.client.home.home import Home as Home
from seglog.client.home.stepping import sleep_ms as sleep_ms
from seglog.client.home.stepping import stepped as stepped
from seglog.client.home.virtual_home import VirtualHome as VirtualHome
from seglog.client.home.waiting import Wait as Wait
from seglog.client.home.waiting import await_for as await_for
from seglog.client.home.waiting import check_may_wait as check_may_wait
from seglog.client.home.waiting import wait_for as wait_for
from seglog.client.home.waiting import wait_here as wait_here
