/* What the kernels name of seglog/storage/format, written from there by `make docs`. */
#pragma once

/* record */
#define SEGLOG_FILLER_MAGIC_AT 4 /* u32 */
#define SEGLOG_HEADS_0_SIZE 88 /* CommitLog record head (b4 born host, b4 store host) */
#define SEGLOG_HEADS_0_SIZE_BYTES_AT 0 /* i32, bytes */
#define SEGLOG_HEADS_0_MAGIC_AT 4 /* u32 */
#define SEGLOG_HEADS_0_BODY_CRC_AT 8 /* u32 */
#define SEGLOG_HEADS_0_QUEUE_ID_AT 12 /* i32 */
#define SEGLOG_HEADS_0_FLAG_AT 16 /* i32 */
#define SEGLOG_HEADS_0_QUEUE_OFFSET_AT 20 /* i64, messages */
#define SEGLOG_HEADS_0_PHY_OFFSET_AT 28 /* i64, bytes from log start */
#define SEGLOG_HEADS_0_SYS_FLAG_AT 36 /* i32, bits */
#define SEGLOG_HEADS_0_BORN_TIMESTAMP_MS_AT 40 /* i64, ms */
#define SEGLOG_HEADS_0_BORN_ADDRESS_AT 48 /* b4 */
#define SEGLOG_HEADS_0_STORE_TIMESTAMP_MS_AT 56 /* i64, ms */
#define SEGLOG_HEADS_0_STORE_ADDRESS_AT 64 /* b4 */
#define SEGLOG_HEADS_0_RECONSUME_TIMES_AT 72 /* i32 */
#define SEGLOG_HEADS_0_PREPARED_TRANSACTION_OFFSET_AT 76 /* i64, bytes from log start */
#define SEGLOG_HEADS_0_BODY_BYTES_AT 84 /* i32, bytes */
#define SEGLOG_HEADS_16_SIZE 100 /* CommitLog record head (b16 born host, b4 store host) */
#define SEGLOG_HEADS_16_STORE_TIMESTAMP_MS_AT 68 /* i64, ms */
#define SEGLOG_HEADS_16_BODY_BYTES_AT 96 /* i32, bytes */
#define SEGLOG_HEADS_32_SIZE 100 /* CommitLog record head (b4 born host, b16 store host) */
#define SEGLOG_HEADS_32_STORE_TIMESTAMP_MS_AT 56 /* i64, ms */
#define SEGLOG_HEADS_32_BODY_BYTES_AT 96 /* i32, bytes */
#define SEGLOG_HEADS_48_SIZE 112 /* CommitLog record head (b16 born host, b16 store host) */
#define SEGLOG_HEADS_48_STORE_TIMESTAMP_MS_AT 68 /* i64, ms */
#define SEGLOG_HEADS_48_BODY_BYTES_AT 108 /* i32, bytes */
#define SEGLOG_MAGIC_V1 0xdaa320a7u
#define SEGLOG_MAGIC_V2 0xdaa320abu
#define SEGLOG_CRC_MASK 2147483647
#define SEGLOG_HOST_BITS 48
#define SEGLOG_MAGIC_AT 4
#define SEGLOG_MIN_RECORD_BYTES 91
#define SEGLOG_MAX_NAME_FLIPS 8
#define SEGLOG_INNER_NAMES "INNER_"
#define SEGLOG_DELAY_LEVELS_S {1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200}

/* sys_flag */
#define SEGLOG_TRANSACTION_MASK 12
#define SEGLOG_TRANSACTION_PREPARED 4
#define SEGLOG_TRANSACTION_ROLLBACK 12
#define SEGLOG_BORN_HOST_V6 16
#define SEGLOG_STORE_HOST_V6 32
#define SEGLOG_INNER_BATCH 128

/* properties */
#define SEGLOG_KEYS "KEYS"
#define SEGLOG_TAGS "TAGS"
#define SEGLOG_DELAY "DELAY"
#define SEGLOG_NAME_END 1
#define SEGLOG_ENTRY_END 2
#define SEGLOG_MAX_PROPERTIES_BYTES 32767
#define SEGLOG_TORN_NULS 8
#define SEGLOG_CRC_NAME "__CRC32#\001"
#define SEGLOG_CRC_DIGITS 10
#define SEGLOG_CRC_PROPERTY_BYTES 20

/* consume_queue */
#define SEGLOG_CQ_UNIT_SIZE 20 /* ConsumeQueue unit */
#define SEGLOG_CQ_UNIT_PHY_OFFSET_AT 0 /* i64, bytes from log start */
#define SEGLOG_CQ_UNIT_SIZE_BYTES_AT 8 /* i32, bytes */
#define SEGLOG_CQ_UNIT_TAGS_CODE_AT 12 /* i64 */
#define SEGLOG_CQ_UNIT_BYTES 20
#define SEGLOG_PRE_BLANK_BYTES 2147483647

/* consume_queue_ext */
#define SEGLOG_MAX_EXT_ADDRESS -2147483649LL

/* host */
#define SEGLOG_IPV4_BYTES 4
#define SEGLOG_IPV6_BYTES 16
#define SEGLOG_PORT_BYTES 4

/* index */
#define SEGLOG_INDEX_HEADER_SIZE 40 /* Index file header */
#define SEGLOG_INDEX_HEADER_BEGIN_TIMESTAMP_MS_AT 0 /* i64, ms */
#define SEGLOG_INDEX_HEADER_END_TIMESTAMP_MS_AT 8 /* i64, ms */
#define SEGLOG_INDEX_HEADER_BEGIN_PHY_OFFSET_AT 16 /* i64, bytes from log start */
#define SEGLOG_INDEX_HEADER_END_PHY_OFFSET_AT 24 /* i64, bytes from log start */
#define SEGLOG_INDEX_HEADER_HASH_SLOT_COUNT_AT 32 /* i32 */
#define SEGLOG_INDEX_HEADER_INDEX_COUNT_AT 36 /* i32 */
#define SEGLOG_INDEX_SLOT_SIZE 4 /* Index slot */
#define SEGLOG_INDEX_SLOT_NEWEST_ENTRY_AT 0 /* i32 */
#define SEGLOG_INDEX_ENTRY_SIZE 20 /* Index entry */
#define SEGLOG_INDEX_ENTRY_KEY_HASH_AT 0 /* i32 */
#define SEGLOG_INDEX_ENTRY_PHY_OFFSET_AT 4 /* i64, bytes from log start */
#define SEGLOG_INDEX_ENTRY_TIME_DIFF_S_AT 12 /* i32, s */
#define SEGLOG_INDEX_ENTRY_PREVIOUS_ENTRY_AT 16 /* i32 */
#define SEGLOG_MAX_INT 2147483647

/* index_keys */
#define SEGLOG_UNIQ_KEY_NAME "UNIQ_KEY"
#define SEGLOG_KEYS_NAME "KEYS"
#define SEGLOG_TAGS_NAME "TAGS"

/* names */
#define SEGLOG_SCHEDULE_TOPIC "SCHEDULE_TOPIC_XXXX"
#define SEGLOG_MAX_TOPIC_BYTES 127

/* placeholder */
#define SEGLOG_PLACEHOLDER_FLAG 1129140308
#define SEGLOG_PLACEHOLDER_MARK "SEGLOG_COMPACTED\0011\002"

/* seal */
#define SEGLOG_SEAL_BLOCK_BYTES 65536

/* tombstone */
#define SEGLOG_LOST_FLAG 1280267092
#define SEGLOG_LOST_TAGS_CODE (-447192428)

/* a row of a walk, in memory only */
#define SEGLOG_ROW_SIZE 44
#define SEGLOG_ROW_PHY_OFFSET_AT 0 /* int64 */
#define SEGLOG_ROW_QUEUE_OFFSET_AT 8 /* int64 */
#define SEGLOG_ROW_TAGS_CODE_AT 16 /* int64 */
#define SEGLOG_ROW_STORE_TIMESTAMP_MS_AT 24 /* int64 */
#define SEGLOG_ROW_SIZE_BYTES_AT 32 /* int32 */
#define SEGLOG_ROW_QUEUE_AT 36 /* int32 */
#define SEGLOG_ROW_SYS_FLAG_AT 40 /* int32 */

/* a key of a record, in memory only */
#define SEGLOG_KEY_ROW_SIZE 20
#define SEGLOG_KEY_ROW_KEY_HASH_AT 0 /* int32 */
#define SEGLOG_KEY_ROW_PHY_OFFSET_AT 4 /* int64 */
#define SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT 12 /* int64 */

/* what a compaction knows of a record, in memory only */
#define SEGLOG_FACT_SIZE 52
#define SEGLOG_FACT_PHY_OFFSET_AT 0 /* int64 */
#define SEGLOG_FACT_QUEUE_OFFSET_AT 8 /* int64 */
#define SEGLOG_FACT_STORE_TIMESTAMP_MS_AT 16 /* int64 */
#define SEGLOG_FACT_KEY_HIGH_AT 24 /* int64 */
#define SEGLOG_FACT_KEY_LOW_AT 32 /* int64 */
#define SEGLOG_FACT_SIZE_BYTES_AT 40 /* int32 */
#define SEGLOG_FACT_QUEUE_AT 44 /* int32 */
#define SEGLOG_FACT_PLACEHOLDER_BYTES_AT 48 /* uint16 */
#define SEGLOG_FACT_BITS_AT 50 /* uint16 */

/* a record with a key that a compaction compares, in memory only */
#define SEGLOG_KEYED_SIZE 37
#define SEGLOG_KEYED_KEY_HIGH_AT 0 /* int64 */
#define SEGLOG_KEYED_KEY_LOW_AT 8 /* int64 */
#define SEGLOG_KEYED_QUEUE_OFFSET_AT 16 /* int64 */
#define SEGLOG_KEYED_QUEUE_AT 24 /* int32 */

/* a unit of a queue that is rebuilt, in memory only */
#define SEGLOG_SPILLED_SIZE 33
#define SEGLOG_SPILLED_QUEUE_OFFSET_AT 0 /* int64 */
#define SEGLOG_SPILLED_PHY_OFFSET_AT 8 /* int64 */
#define SEGLOG_SPILLED_TAGS_CODE_AT 16 /* int64 */
#define SEGLOG_SPILLED_SIZE_BYTES_AT 24 /* int32 */
#define SEGLOG_SPILLED_QUEUE_AT 28 /* int32 */
#define SEGLOG_SPILLED_IS_KEPT_AT 32 /* bool */

#define SEGLOG_INTERFACE "1d502cbb"
