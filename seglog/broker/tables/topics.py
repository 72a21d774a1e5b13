"""Topics of a broker: their queues and permissions, kept in ``config/topics.json``.

Truth: the file, which is saved before a new topic can be used. The queues themselves belong to the store; a
store written without a broker has queues but no file, and its topics are added at open.

Source: ``TopicConfigManager.java``, ``TopicConfig.java``, ``TopicValidator.java``, ``PermName.java``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from typing_extensions import override

from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.config_shape import as_bool, as_int, as_object, as_text, check_int32
from seglog.broker.tables.data_version import DataVersion
from seglog.broker.tables.entries import without_unreadable
from seglog.broker.tables.named_table import NamedTable
from seglog.clock import Clock
from seglog.errors import InvalidArgumentError, NotFoundError
from seglog.logs import logger
from seglog.remoting.topics import MAX_QUEUES, PERM_INHERIT, PERM_READ_WRITE, perm_text
from seglog.storage.format.config import ConfigValue
from seglog.storage.format.names import (
    DLQ_PREFIX,
    HALF_TOPIC,
    MAX_SYSTEM_TOPIC_BYTES,
    OP_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    SYSTEM_PREFIX,
)
from seglog.storage.format.system_names import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    OFFSET_MOVED_TOPIC,
    REPLY_SUFFIX,
    SELF_TEST_TOPIC,
    SYSTEM_TOPICS,
)
from seglog.storage.small_files import ConfigFile
from seglog.text import printable

MAX_TOPIC_CHARACTERS: Final = 127
MAX_TOPIC_SETTINGS: Final = 1 << 16
"""Characters that the settings of one topic may take in the file; RocketMQ's take some 200."""
TOPIC_TABLE: Final = "topicConfigTable"
SINGLE_TAG: Final = "SINGLE_TAG"
MULTI_TAG: Final = "MULTI_TAG"
"""Filter type of a topic whose messages may have several tags; no client makes such topics any more."""
FILTER_TYPES: Final = frozenset({SINGLE_TAG, MULTI_TAG})
UNIT: Final = 1
"""``TopicSysFlag`` of a topic that a producer in unit mode created."""
UNIT_SUB: Final = 2
"""``TopicSysFlag`` of a topic with subscribers in unit mode."""
_log = logger(__name__)
_NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """Settings of one topic.

    Attributes:
        perm: 4 read, 2 write, 1 inherit.
        attributes: Such as ``{"message.type": "NORMAL"}``.
        unknown: Fields of the file that this version does not know; written back as they were.
    """

    name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = PERM_READ_WRITE
    is_order: bool = False
    filter_type: str = SINGLE_TAG
    sys_flag: int = 0
    attributes: Mapping[str | int, ConfigValue] = field(default_factory=dict)
    unknown: Mapping[str | int, ConfigValue] = field(default_factory=dict)

    @property
    def queue_nums(self) -> int:
        """The number of queues, including those that can only be read or only be written."""
        return max(self.read_queue_nums, self.write_queue_nums)

    def check_listed(self) -> None:
        """Refuses to list the queues of a topic with too many, as a file may have it.

        Raises:
            InvalidArgumentError: It has more than :data:`MAX_QUEUES`.
        """
        if self.queue_nums > MAX_QUEUES:
            raise _too_many(self.name, self.queue_nums)

    def java_text(self) -> str:
        """Returns the settings as text in RocketMQ's form, for remarks."""
        attributes = ", ".join(f"{name}={value}" for name, value in self.attributes.items())
        return (
            f"TopicConfig [topicName={self.name}, readQueueNums={self.read_queue_nums},"
            f" writeQueueNums={self.write_queue_nums}, perm={perm_text(self.perm)},"
            f" topicFilterType={self.filter_type}, topicSysFlag={self.sys_flag},"
            f" order={str(self.is_order).lower()}, attributes={{{attributes}}}]"
        )

    @classmethod
    def parse(cls, name: str, value: ConfigValue) -> TopicConfig:
        """Returns the settings that a file holds.

        Raises:
            CorruptError: A field has another type.
        """
        fields = as_object(value, name)
        return cls(
            as_text(fields.get("topicName", name), "topicName"),
            as_int(fields.get("readQueueNums", 16), "readQueueNums"),
            as_int(fields.get("writeQueueNums", 16), "writeQueueNums"),
            as_int(fields.get("perm", PERM_READ_WRITE), "perm"),
            as_bool(fields.get("order", False), "order"),
            as_text(fields.get("topicFilterType", SINGLE_TAG), "topicFilterType"),
            as_int(fields.get("topicSysFlag", 0), "topicSysFlag"),
            as_object(fields.get("attributes", {}), "attributes"),
            {key: item for key, item in fields.items() if key not in _KNOWN},
        )

    def to_config(self) -> Mapping[str | int, ConfigValue]:
        """Returns what a file holds."""
        return {
            "attributes": self.attributes,
            "order": self.is_order,
            "perm": self.perm,
            "readQueueNums": self.read_queue_nums,
            "topicFilterType": self.filter_type,
            "topicName": self.name,
            "topicSysFlag": self.sys_flag,
            "writeQueueNums": self.write_queue_nums,
            **self.unknown,
        }


_KNOWN: Final = frozenset(TopicConfig("").to_config())


class TopicTable(NamedTable[TopicConfig]):
    """All topics of a broker. Any thread may call it.

    Args:
        file: ``config/topics.json``.
        config: Names of the broker and of its cluster, which are topics too.
        clock: Stamps the table's version.
        tell_store: Called after a topic with attributes was saved: they may change its kind.
        with_system: Whether the topics that every broker has exist, even if the file lacks them.
    """

    most_entry_characters = MAX_TOPIC_SETTINGS

    def __init__(
        self,
        file: ConfigFile,
        config: BrokerConfig,
        clock: Clock,
        tell_store: Callable[[], None],
        *,
        with_system: bool = True,
    ) -> None:
        self._config = config
        self._tell_store = tell_store
        self.on_deleted: Callable[[str], None] | None = None
        """Called with the name of a topic that was deleted."""
        system = system_topics(config) if with_system else ()
        super().__init__(file, clock, {topic.name: topic for topic in system})
        stored = file.load(_parse_table, without_unreadable(_parse_table, (TOPIC_TABLE,), "topics.json"))
        if stored is not None:
            self._version, topics, self._unknown = stored
            self._values |= topics
            _tell_of_too_many(topics.values())

    def use(self, config: BrokerConfig) -> None:
        """Uses other settings from now on; the names of the broker and of its cluster stay."""
        self._config = config

    def get(self, name: str) -> TopicConfig | None:
        """Returns a topic's settings, None if there is no such topic."""
        return self._values.get(name)

    def all(self) -> list[TopicConfig]:
        """Returns every topic, system topics included, by name."""
        return sorted(self._values.values(), key=lambda topic: topic.name)

    def take_over(
        self, queues: Iterable[tuple[str, int]], proven: Callable[[], Mapping[str, TopicConfig]] = dict
    ) -> None:
        """Adds the topics of queues that the store has and the file lacks.

        RocketMQ answers that such topics do not exist. They are saved with the next change or at close. A
        topic in the file keeps its settings: an operator may have given it fewer queues than it had.

        Args:
            queues: Topic and queue id of each queue.
            proven: Returns what the store proves of its topics; called if one is lacking.
        """
        counts: dict[str, int] = {}
        with self._lock:
            for name, queue_id in queues:
                if name not in self._values:
                    counts[name] = max(counts.get(name, 0), queue_id + 1)
            attributes = {name: topic.attributes for name, topic in proven().items()} if counts else {}
            taken = {
                name: TopicConfig(name, count, count, attributes=attributes.get(name, {}))
                for name, count in counts.items()
            }
            self._values |= taken
            self._is_dirty = self._is_dirty or bool(counts)
        _tell_of_too_many(taken.values())

    def put(self, topic: TopicConfig) -> None:
        """Creates a topic or replaces its settings, and saves the table.

        Raises:
            InvalidArgumentError: A number does not fit, so that a Java broker would drop the whole file; or
                the topic would have more than :data:`MAX_QUEUES` queues, and more than now; or its settings
                could not be read again, or are too long.
            FullError: There is no space; nothing has changed.
        """
        self.put_all((topic,))

    def put_all(self, topics: Sequence[TopicConfig]) -> None:
        """Creates topics or replaces their settings, and saves the table once.

        Raises:
            InvalidArgumentError: As :meth:`put`, of any; nothing has changed.
            FullError: There is no space; nothing has changed.
        """
        for topic in topics:
            for number in (topic.read_queue_nums, topic.write_queue_nums, topic.perm, topic.sys_flag):
                check_int32(number, topic.name)
            known = self._values.get(topic.name)
            if topic.queue_nums > max(MAX_QUEUES, 0 if known is None else known.queue_nums):
                raise _too_many(topic.name, topic.queue_nums)
        if all(self._values.get(topic.name) == topic for topic in topics):
            return
        with self._changing():
            changed = {topic.name: topic for topic in topics if self._values.get(topic.name) != topic}
            if changed:
                # The store reads the attributes from the file.
                has_attributes = any(topic.attributes for topic in changed.values())
                self._save({**self._values, **changed}, together=not has_attributes)
                if has_attributes:
                    self._tell_store()

    def ensure(self, topic: TopicConfig, *, lazily: bool = False) -> TopicConfig:
        """Returns the topic of that name, creating it as given if it does not exist.

        Args:
            topic: The settings of a new one.
            lazily: Whether it may be saved later if the calling thread may not wait.

        Raises:
            FullError: There is no space; the topic is not created.
        """
        known = self._values.get(topic.name)
        return self.ensure_all((topic,), lazily=lazily)[0] if known is None else known

    def ensure_all(self, topics: Sequence[TopicConfig], *, lazily: bool = False) -> list[TopicConfig]:
        """Returns topics as :meth:`ensure` does; new ones are saved together.

        Raises:
            FullError: There is no space; none is created.
        """
        self._ensure_all({topic.name: topic for topic in topics}, lazily=lazily)
        known = self._values
        return [known.get(topic.name, topic) for topic in topics]

    def delete(self, name: str) -> None:
        """Deletes a topic, and saves the table; the store keeps its messages.

        Raises:
            NotFoundError: There is no such topic.
            InvalidArgumentError: It is a system topic.
            FullError: There is no space; nothing has changed.
        """
        if is_system_topic(name, self._config):
            raise InvalidArgumentError(f"the topic {name} is the broker's own and cannot be deleted")
        with self._changing():
            if name not in self._values:
                raise NotFoundError(f"there is no topic {name}", help="`seglog topic ls STORE` lists topics")
            self._save({key: topic for key, topic in self._values.items() if key != name})
        if self.on_deleted is not None:
            self.on_deleted(name)

    def create_for_send(
        self, name: str, default_topic: str, queue_nums: int, sys_flag: int = 0
    ) -> TopicConfig | None:
        """Returns the topic of a send, creating it if permitted.

        Args:
            name: A valid topic name.
            default_topic: The client's model topic; its queues bound ``queue_nums``, and it must be
                inheritable.
            queue_nums: The wanted number of queues; a topic never gets more than :data:`MAX_QUEUES`.
            sys_flag: Flags of a new topic.

        Returns:
            None if the model does not allow it; a retry topic is always created, with one queue.
        """
        topic = self._values.get(name)
        if topic is not None:
            return topic
        with self._changing():
            topic = self._values.get(name)
            if topic is not None:
                return topic
            model = self._values.get(default_topic)
            may_inherit = model is not None and model.perm & PERM_INHERIT
            if default_topic == AUTO_CREATE_TOPIC and not self._config.auto_create_topics:
                may_inherit = 0
            if model is not None and may_inherit:
                count = max(0, min(queue_nums, model.write_queue_nums, MAX_QUEUES))
                perm = model.perm & ~PERM_INHERIT
                topic = TopicConfig(
                    name, count, count, perm, filter_type=model.filter_type, sys_flag=sys_flag
                )
            elif name.startswith(RETRY_PREFIX):
                topic = TopicConfig(name, 1, 1, sys_flag=sys_flag)
            else:
                return None
            self._save({**self._values, name: topic})
            return topic

    @override
    def _as_config(
        self, version: DataVersion, values: Mapping[str, TopicConfig]
    ) -> Mapping[str | int, ConfigValue]:
        return {
            "dataVersion": version.to_config(),
            **self._as_entries(values),
            **self._unknown,
        }

    @override
    def _entries_of(self, value: ConfigValue) -> Mapping[str, TopicConfig]:
        return _parse_table(value)[1]

    @override
    def _as_entries(self, values: Mapping[str, TopicConfig]) -> Mapping[str | int, ConfigValue]:
        return {TOPIC_TABLE: {name: topic.to_config() for name, topic in values.items()}}


def system_topics(config: BrokerConfig) -> list[TopicConfig]:
    """Returns the topics that every broker has."""
    everything = PERM_READ_WRITE | PERM_INHERIT
    queues = config.default_topic_queue_nums
    return [
        TopicConfig(AUTO_CREATE_TOPIC, queues, queues, everything),
        TopicConfig(config.cluster_name, perm=everything),
        TopicConfig(config.broker_name, 1, 1, everything),
        TopicConfig(f"{config.cluster_name}{REPLY_SUFFIX}", 1, 1),
        TopicConfig(BENCHMARK_TOPIC, 1024, 1024),
        TopicConfig(SELF_TEST_TOPIC, 1, 1),
        TopicConfig(OFFSET_MOVED_TOPIC, 1, 1),
        TopicConfig(SCHEDULE_TOPIC, 18, 18),
        TopicConfig(HALF_TOPIC, 1, 1),
        TopicConfig(OP_TOPIC, 1, 1),
    ]


def system_topic_names(config: BrokerConfig) -> frozenset[str]:
    """Returns the names of system topics, including those that this broker does not create."""
    return frozenset(topic.name for topic in system_topics(config)) | SYSTEM_TOPICS


def is_system_topic(name: str, config: BrokerConfig) -> bool:
    """Returns whether a topic is a system topic, which cannot be created or altered."""
    return name.startswith(SYSTEM_PREFIX) or name in system_topic_names(config)


def topic_name_problem(name: str) -> str | None:
    """Returns why a broker refuses a topic with this name, in RocketMQ's words; None if it is valid."""
    if not name.strip():
        return "The specified topic is blank."
    if not _NAME.fullmatch(name):
        allowed = "^[%|a-zA-Z0-9_-]+$"
        return f"The specified topic: {name}, contains illegal characters, allowing only {allowed}"
    if name.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        if len(name) > MAX_SYSTEM_TOPIC_BYTES:
            return (
                f"The specified topic is DLQ or Retry topic: {name}, and it's longer than topic max length:"
                f" {MAX_SYSTEM_TOPIC_BYTES}"
            )
    elif len(name) > MAX_TOPIC_CHARACTERS:
        return f"The specified topic: {name}, is longer than topic max length: {MAX_TOPIC_CHARACTERS}"
    return None


def _too_many(name: str, count: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the topic {name} has {count} queues, and at most {MAX_QUEUES} are served",
        help="`mqadmin updateTopic`, or `seglog topic alter STORE TOPIC --queues N`, gives it fewer",
    )


def _tell_of_too_many(topics: Iterable[TopicConfig]) -> None:
    large = [topic for topic in topics if topic.queue_nums > MAX_QUEUES]
    if large:
        _log.warning(
            "%d topics have more than %d queues, and no route until they have fewer; %s has %d",
            len(large),
            MAX_QUEUES,
            printable(large[0].name),
            large[0].queue_nums,
        )


_Table = tuple[DataVersion, dict[str, TopicConfig], Mapping[str | int, ConfigValue]]


def _parse_table(value: ConfigValue) -> _Table:
    fields = as_object(value, "topics")
    table = as_object(fields.get("topicConfigTable", {}), "topicConfigTable")
    topics = {str(name): TopicConfig.parse(str(name), topic) for name, topic in table.items()}
    unknown = {key: item for key, item in fields.items() if key not in ("dataVersion", "topicConfigTable")}
    return DataVersion.parse(fields.get("dataVersion")), topics, unknown
