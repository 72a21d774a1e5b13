package seglog.judge;

import java.util.List;
import java.util.Map;

/** One command with its options, read from a JSON line or from the command line. */
final class Request {
  /** What to do; see {@link Judge}. */
  String op;

  /** The store directory. */
  String dir;

  /** Length of a commit-log file, in bytes. */
  int segmentBytes = 1 << 30;

  /** Length of a consume-queue file, in bytes. */
  int queueBytes = 6_000_000;

  /** Further properties of MessageStoreConfig, by their name in broker.conf. */
  Map<String, String> config = Map.of();

  /** Attributes of topics, by topic; others need no declaration. */
  Map<String, Map<String, String>> topics = Map.of();

  /** append, write: what to add, in this order. */
  List<MessageSpec> messages = List.of();

  /** append, write, compact, bench fill: end with Runtime.halt, as a crash would; the abort file stays. */
  boolean halt;

  /** dump, probe, compact: what to ask. */
  List<Probe> probes = List.of();

  /** brokerStart: properties of BrokerConfig, by their name in broker.conf. */
  Map<String, String> broker = Map.of();

  /** brokerStart: also start a name server, which the broker tells of its topics. */
  boolean nameServer;

  /** brokerStart: where that listens; 0 for a free port. The broker has its listenPort in {@link #broker}. */
  int nameServerPort;

  /** brokerAsk: which of the clients asks; each has a connection of its own. member...: which member. */
  String client = "";

  /**
   * brokerAsk: the request's code, ext fields, body as base64, and how long to wait at most;
   * nameServerRestart: how long there is none.
   */
  int code;

  Map<String, String> ext = Map.of();
  String body;
  long timeoutMs = 30_000;

  /** memberStart: its group, topic and kind of listener; memberLook: the topic. */
  String group;

  String topic;
  boolean isOrdered;

  /** admin: the command and its options, without the name server. */
  List<String> arguments = List.of();

  /** admin: name servers of another cluster than that of the broker of this process. */
  String nameServers;

  /** clientId, memberStart: settings of a client; a client that broadcasts keeps its name. */
  String instanceName;

  String unitName;
  boolean broadcasts;

  /** trylock: after a refused start go through the shutdown that the broker goes through. */
  boolean likeBroker;

  /** timers: requests of the stores whose timers run at once. */
  List<Request> stores = List.of();

  /** hold: how long at most; timer, timers: how long; bench: how long to measure. */
  double seconds = 3;

  /** bench: what to measure. */
  String workload;

  /** bench: how long to run before measuring. */
  double warmUpSeconds = 1;

  /** bench: threads that put at once; async: messages in flight. */
  int threads = 1;

  /** bench: queues that messages go to in turn. */
  int queues = 1;

  /** bench: TAGS, KEYS and UNIQ_KEY in each message. */
  boolean usual;

  /** bench: bodies of a batch are between 64 and 2048 bytes long. */
  boolean ragged;

  /** bench write: take the time of each call. */
  boolean timed;

  /** bench pull, random: do not copy what is handed out. */
  boolean view;

  /** bench pull, random: make an array of each body. */
  boolean loop;

  /** bench: body length of each message. */
  int bodyBytes = 1024;

  /** bench: messages a call. */
  int batchSize = 1;

  /** bench fill, pull, random: messages to write first; write: at most so many, unless 0. */
  long messageCount;

  /** bench: stop earlier when so many body bytes were written. */
  long maxBytes = 1L << 30;
}
