/* Written by `make docs` from seglog/storage/format; change it there. */
#pragma once

/* record */
#define SEGLOG_FILLER_SIZE 8 /* End-of-file filler */
#define SEGLOG_FILLER_SIZE_BYTES_AT 0 /* i32, bytes */
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
#define SEGLOG_HEADS_0_BORN_PORT_AT 52 /* i32 */
#define SEGLOG_HEADS_0_STORE_TIMESTAMP_MS_AT 56 /* i64, ms */
#define SEGLOG_HEADS_0_STORE_ADDRESS_AT 64 /* b4 */
#define SEGLOG_HEADS_0_STORE_PORT_AT 68 /* i32 */
#define SEGLOG_HEADS_0_RECONSUME_TIMES_AT 72 /* i32 */
#define SEGLOG_HEADS_0_PREPARED_TRANSACTION_OFFSET_AT 76 /* i64, bytes from log start */
#define SEGLOG_HEADS_0_BODY_BYTES_AT 84 /* i32, bytes */
#define SEGLOG_HEADS_16_SIZE 100 /* CommitLog record head (b16 born host, b4 store host) */
#define SEGLOG_HEADS_16_SIZE_BYTES_AT 0 /* i32, bytes */
#define SEGLOG_HEADS_16_MAGIC_AT 4 /* u32 */
#define SEGLOG_HEADS_16_BODY_CRC_AT 8 /* u32 */
#define SEGLOG_HEADS_16_QUEUE_ID_AT 12 /* i32 */
#define SEGLOG_HEADS_16_FLAG_AT 16 /* i32 */
#define SEGLOG_HEADS_16_QUEUE_OFFSET_AT 20 /* i64, messages */
#define SEGLOG_HEADS_16_PHY_OFFSET_AT 28 /* i64, bytes from log start */
#define SEGLOG_HEADS_16_SYS_FLAG_AT 36 /* i32, bits */
#define SEGLOG_HEADS_16_BORN_TIMESTAMP_MS_AT 40 /* i64, ms */
#define SEGLOG_HEADS_16_BORN_ADDRESS_AT 48 /* b16 */
#define SEGLOG_HEADS_16_BORN_PORT_AT 64 /* i32 */
#define SEGLOG_HEADS_16_STORE_TIMESTAMP_MS_AT 68 /* i64, ms */
#define SEGLOG_HEADS_16_STORE_ADDRESS_AT 76 /* b4 */
#define SEGLOG_HEADS_16_STORE_PORT_AT 80 /* i32 */
#define SEGLOG_HEADS_16_RECONSUME_TIMES_AT 84 /* i32 */
#define SEGLOG_HEADS_16_PREPARED_TRANSACTION_OFFSET_AT 88 /* i64, bytes from log start */
#define SEGLOG_HEADS_16_BODY_BYTES_AT 96 /* i32, bytes */
#define SEGLOG_HEADS_32_SIZE 100 /* CommitLog record head (b4 born host, b16 store host) */
#define SEGLOG_HEADS_32_SIZE_BYTES_AT 0 /* i32, bytes */
#define SEGLOG_HEADS_32_MAGIC_AT 4 /* u32 */
#define SEGLOG_HEADS_32_BODY_CRC_AT 8 /* u32 */
#define SEGLOG_HEADS_32_QUEUE_ID_AT 12 /* i32 */
#define SEGLOG_HEADS_32_FLAG_AT 16 /* i32 */
#define SEGLOG_HEADS_32_QUEUE_OFFSET_AT 20 /* i64, messages */
#define SEGLOG_HEADS_32_PHY_OFFSET_AT 28 /* i64, bytes from log start */
#define SEGLOG_HEADS_32_SYS_FLAG_AT 36 /* i32, bits */
#define SEGLOG_HEADS_32_BORN_TIMESTAMP_MS_AT 40 /* i64, ms */
#define SEGLOG_HEADS_32_BORN_ADDRESS_AT 48 /* b4 */
#define SEGLOG_HEADS_32_BORN_PORT_AT 52 /* i32 */
#define SEGLOG_HEADS_32_STORE_TIMESTAMP_MS_AT 56 /* i64, ms */
#define SEGLOG_HEADS_32_STORE_ADDRESS_AT 64 /* b16 */
#define SEGLOG_HEADS_32_STORE_PORT_AT 80 /* i32 */
#define SEGLOG_HEADS_32_RECONSUME_TIMES_AT 84 /* i32 */
#define SEGLOG_HEADS_32_PREPARED_TRANSACTION_OFFSET_AT 88 /* i64, bytes from log start */
#define SEGLOG_HEADS_32_BODY_BYTES_AT 96 /* i32, bytes */
#define SEGLOG_HEADS_48_SIZE 112 /* CommitLog record head (b16 born host, b16 store host) */
#define SEGLOG_HEADS_48_SIZE_BYTES_AT 0 /* i32, bytes */
#define SEGLOG_HEADS_48_MAGIC_AT 4 /* u32 */
#define SEGLOG_HEADS_48_BODY_CRC_AT 8 /* u32 */
#define SEGLOG_HEADS_48_QUEUE_ID_AT 12 /* i32 */
#define SEGLOG_HEADS_48_FLAG_AT 16 /* i32 */
#define SEGLOG_HEADS_48_QUEUE_OFFSET_AT 20 /* i64, messages */
#define SEGLOG_HEADS_48_PHY_OFFSET_AT 28 /* i64, bytes from log start */
#define SEGLOG_HEADS_48_SYS_FLAG_AT 36 /* i32, bits */
#define SEGLOG_HEADS_48_BORN_TIMESTAMP_MS_AT 40 /* i64, ms */
#define SEGLOG_HEADS_48_BORN_ADDRESS_AT 48 /* b16 */
#define SEGLOG_HEADS_48_BORN_PORT_AT 64 /* i32 */
#define SEGLOG_HEADS_48_STORE_TIMESTAMP_MS_AT 68 /* i64, ms */
#define SEGLOG_HEADS_48_STORE_ADDRESS_AT 76 /* b16 */
#define SEGLOG_HEADS_48_STORE_PORT_AT 92 /* i32 */
#define SEGLOG_HEADS_48_RECONSUME_TIMES_AT 96 /* i32 */
#define SEGLOG_HEADS_48_PREPARED_TRANSACTION_OFFSET_AT 100 /* i64, bytes from log start */
#define SEGLOG_HEADS_48_BODY_BYTES_AT 108 /* i32, bytes */
#define SEGLOG_MAGIC_V1 0xdaa320a7u
#define SEGLOG_MAGIC_V2 0xdaa320abu
#define SEGLOG_MAGIC_BLANK 0xcbd43194u
#define SEGLOG_CRC_MASK 2147483647
#define SEGLOG_HOST_BITS 48
#define SEGLOG_SYS_FLAG_AT 36
#define SEGLOG_PHY_OFFSET_AT 28
#define SEGLOG_MAGIC_AT 4
#define SEGLOG_MIN_RECORD_BYTES 91
#define SEGLOG_FILLER_BYTES 8
#define SEGLOG_MAX_NAME_FLIPS 8

/* message */
#define SEGLOG_MESSAGE_ID_SIZE 12 /* Message id (offsetMsgId), behind the address bytes */
#define SEGLOG_MESSAGE_ID_PORT_AT 0 /* i32 */
#define SEGLOG_MESSAGE_ID_PHY_OFFSET_AT 4 /* i64, bytes */
#define SEGLOG_MAX_INFLATED_BYTES 67108864

/* sys_flag */
#define SEGLOG_COMPRESSED 1
#define SEGLOG_MULTI_TAGS 2
#define SEGLOG_TRANSACTION_MASK 12
#define SEGLOG_TRANSACTION_PREPARED 4
#define SEGLOG_TRANSACTION_COMMIT 8
#define SEGLOG_TRANSACTION_ROLLBACK 12
#define SEGLOG_BORN_HOST_V6 16
#define SEGLOG_STORE_HOST_V6 32
#define SEGLOG_NEED_UNWRAP 64
#define SEGLOG_INNER_BATCH 128
#define SEGLOG_COMPRESSION_MASK 1792
#define SEGLOG_COMPRESSION_LZ4 256
#define SEGLOG_COMPRESSION_ZSTD 512
#define SEGLOG_COMPRESSION_ZLIB 768

/* properties */
#define SEGLOG_NAME_END 1
#define SEGLOG_ENTRY_END 2
#define SEGLOG_MAX_PROPERTIES_BYTES 32767
#define SEGLOG_CRC_DIGITS 10
#define SEGLOG_CRC_PROPERTY_BYTES 20

/* consume_queue */
#define SEGLOG_CQ_UNIT_SIZE 20 /* ConsumeQueue unit */
#define SEGLOG_CQ_UNIT_PHY_OFFSET_AT 0 /* i64, bytes from log start */
#define SEGLOG_CQ_UNIT_SIZE_BYTES_AT 8 /* i32, bytes */
#define SEGLOG_CQ_UNIT_TAGS_CODE_AT 12 /* i64 */
#define SEGLOG_CQ_UNIT_BYTES 20
#define SEGLOG_DEFAULT_QUEUE_FILE_BYTES 6000000
#define SEGLOG_PRE_BLANK_BYTES 2147483647

/* batch_consume_queue */
#define SEGLOG_BATCH_UNIT_SIZE 46 /* BatchConsumeQueue unit */
#define SEGLOG_BATCH_UNIT_PHY_OFFSET_AT 0 /* i64, bytes from log start */
#define SEGLOG_BATCH_UNIT_SIZE_BYTES_AT 8 /* i32, bytes */
#define SEGLOG_BATCH_UNIT_TAGS_CODE_AT 12 /* i64 */
#define SEGLOG_BATCH_UNIT_STORE_TIMESTAMP_MS_AT 20 /* i64, ms */
#define SEGLOG_BATCH_UNIT_BASE_QUEUE_OFFSET_AT 28 /* i64, messages */
#define SEGLOG_BATCH_UNIT_BATCH_SIZE_AT 36 /* i16, messages */
#define SEGLOG_BATCH_UNIT_COMPACTED_OFFSET_AT 38 /* i32 */
#define SEGLOG_BATCH_UNIT_RESERVED_AT 42 /* i32 */
#define SEGLOG_BATCH_UNIT_BYTES 46
#define SEGLOG_DEFAULT_BATCH_QUEUE_FILE_BYTES 13800000
#define SEGLOG_NO_COMPACTED_OFFSET (-1)
#define SEGLOG_MAX_BATCH_SIZE 32767

/* checkpoint */
#define SEGLOG_CHECKPOINT_SIZE 48 /* checkpoint */
#define SEGLOG_CHECKPOINT_PHYSIC_TIMESTAMP_MS_AT 0 /* i64, ms */
#define SEGLOG_CHECKPOINT_LOGICS_TIMESTAMP_MS_AT 8 /* i64, ms */
#define SEGLOG_CHECKPOINT_INDEX_TIMESTAMP_MS_AT 16 /* i64, ms */
#define SEGLOG_CHECKPOINT_MASTER_FLUSHED_OFFSET_AT 24 /* i64, bytes from log start */
#define SEGLOG_CHECKPOINT_CONFIRM_PHY_OFFSET_AT 32 /* i64, bytes from log start */
#define SEGLOG_CHECKPOINT_LOGICS_PHY_OFFSET_AT 40 /* i64, bytes from log start */
#define SEGLOG_CHECKPOINT_FILE_BYTES 4096

/* compaction */
#define SEGLOG_NEVER_COMPACTED (-1)

/* config_json */
#define SEGLOG_MAX_DEPTH 32

/* config_refs */
#define SEGLOG_MAX_HEIGHT 64
#define SEGLOG_MAX_VALUES 1000000

/* consume_queue_ext */
#define SEGLOG_EXT_UNIT_SIZE 20 /* ConsumeQueueExt unit, head */
#define SEGLOG_EXT_UNIT_SIZE_BYTES_AT 0 /* i16, bytes */
#define SEGLOG_EXT_UNIT_TAGS_CODE_AT 2 /* i64 */
#define SEGLOG_EXT_UNIT_STORE_TIMESTAMP_MS_AT 10 /* i64, ms */
#define SEGLOG_EXT_UNIT_BITMAP_BYTES_AT 18 /* i16, bytes */
#define SEGLOG_EXT_END_SIZE 2 /* ConsumeQueueExt end of file */
#define SEGLOG_EXT_END_MARK_AT 0 /* i16 */
#define SEGLOG_EXT_HEAD_BYTES 20
#define SEGLOG_MAX_EXT_UNIT_BYTES 32767
#define SEGLOG_DEFAULT_EXT_FILE_BYTES 50331648
#define SEGLOG_END_RESERVE_BYTES 4
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

/* index_view */
#define SEGLOG_MAX_TIMESTAMP_MS 9223372036854775807LL
#define SEGLOG_DEFAULT_QUERY_LIMIT 64

/* inner_batch */
#define SEGLOG_BATCH_HEAD_SIZE 20 /* Message of a batch, head */
#define SEGLOG_BATCH_HEAD_SIZE_BYTES_AT 0 /* i32, bytes */
#define SEGLOG_BATCH_HEAD_MAGIC_AT 4 /* i32 */
#define SEGLOG_BATCH_HEAD_BODY_CRC_AT 8 /* i32 */
#define SEGLOG_BATCH_HEAD_FLAG_AT 12 /* i32 */
#define SEGLOG_BATCH_HEAD_BODY_BYTES_AT 16 /* i32, bytes */
#define SEGLOG_BATCH_PROPERTIES_SIZE 2 /* Message of a batch, behind the body */
#define SEGLOG_BATCH_PROPERTIES_PROPERTIES_BYTES_AT 0 /* i16, bytes */
#define SEGLOG_MIN_BATCH_MESSAGE_BYTES 22

/* names */
#define SEGLOG_FILE_NAME_DIGITS 20
#define SEGLOG_MAX_TOPIC_BYTES 127
#define SEGLOG_MAX_SYSTEM_TOPIC_BYTES 255
#define SEGLOG_MAX_GROUP_BYTES 255
#define SEGLOG_MAX_QUEUE_ID 2147483647

/* seal */
#define SEGLOG_SEAL_HEAD_SIZE 76 /* Seal of a commit-log segment, head */
#define SEGLOG_SEAL_HEAD_MAGIC_AT 0 /* u32 */
#define SEGLOG_SEAL_HEAD_VERSION_AT 4 /* i32 */
#define SEGLOG_SEAL_HEAD_FIRST_PHY_OFFSET_AT 8 /* i64, bytes from log start */
#define SEGLOG_SEAL_HEAD_SEGMENT_BYTES_AT 16 /* i64, bytes */
#define SEGLOG_SEAL_HEAD_BLOCK_BYTES_AT 24 /* i32, bytes */
#define SEGLOG_SEAL_HEAD_BLOCK_COUNT_AT 28 /* i32 */
#define SEGLOG_SEAL_HEAD_RECORD_COUNT_AT 32 /* i64 */
#define SEGLOG_SEAL_HEAD_END_PHY_OFFSET_AT 40 /* i64, bytes from log start */
#define SEGLOG_SEAL_HEAD_FIRST_STORE_TIMESTAMP_MS_AT 48 /* i64, ms */
#define SEGLOG_SEAL_HEAD_LAST_STORE_TIMESTAMP_MS_AT 56 /* i64, ms */
#define SEGLOG_SEAL_HEAD_CREATED_MS_AT 64 /* i64, ms */
#define SEGLOG_SEAL_HEAD_SEGMENT_CRC32C_AT 72 /* u32 */
#define SEGLOG_SEAL_BLOCK_SIZE 12 /* Seal of a commit-log segment, one block */
#define SEGLOG_SEAL_BLOCK_CRC32C_AT 0 /* u32 */
#define SEGLOG_SEAL_BLOCK_RECORD_COUNT_AT 4 /* i32 */
#define SEGLOG_SEAL_BLOCK_FIRST_RECORD_AT_AT 8 /* i32, bytes from block start */
#define SEGLOG_SEAL_END_SIZE 4 /* Seal of a commit-log segment, end */
#define SEGLOG_SEAL_END_CRC32C_AT 0 /* u32 */
#define SEGLOG_SEAL_MAGIC 1397047628
#define SEGLOG_SEAL_VERSION 1
#define SEGLOG_SEAL_BLOCK_BYTES 65536
#define SEGLOG_SEAL_NO_RECORD (-1)

/* timer */
#define SEGLOG_TIMER_SLOT_SIZE 32 /* Timer wheel slot */
#define SEGLOG_TIMER_SLOT_SLOT_TIME_AT 0 /* i64, precisions since 1970 */
#define SEGLOG_TIMER_SLOT_FIRST_POSITION_AT 8 /* i64, bytes from timer log start */
#define SEGLOG_TIMER_SLOT_LAST_POSITION_AT 16 /* i64, bytes from timer log start */
#define SEGLOG_TIMER_SLOT_MESSAGE_COUNT_AT 24 /* i32, messages */
#define SEGLOG_TIMER_SLOT_MAGIC_AT 28 /* i32 */
#define SEGLOG_TIMER_UNIT_SIZE 52 /* Timer log unit */
#define SEGLOG_TIMER_UNIT_SIZE_BYTES_AT 0 /* i32, bytes */
#define SEGLOG_TIMER_UNIT_PREVIOUS_POSITION_AT 4 /* i64, bytes from timer log start */
#define SEGLOG_TIMER_UNIT_MAGIC_AT 12 /* i32, bits */
#define SEGLOG_TIMER_UNIT_WRITE_TIMESTAMP_MS_AT 16 /* i64, ms */
#define SEGLOG_TIMER_UNIT_DELAY_MS_AT 24 /* i32, ms */
#define SEGLOG_TIMER_UNIT_PHY_OFFSET_AT 28 /* i64, bytes from log start */
#define SEGLOG_TIMER_UNIT_RECORD_BYTES_AT 36 /* i32, bytes */
#define SEGLOG_TIMER_UNIT_TOPIC_HASH_AT 40 /* i32 */
#define SEGLOG_TIMER_UNIT_RESERVED_AT 44 /* i64 */
#define SEGLOG_TIMER_END_SIZE 16 /* Timer log end of file */
#define SEGLOG_TIMER_END_REST_BYTES_AT 0 /* i32, bytes */
#define SEGLOG_TIMER_END_RESERVED_AT 4 /* i64 */
#define SEGLOG_TIMER_END_MAGIC_AT 12 /* u32 */
#define SEGLOG_TIMER_NORMAL 1
#define SEGLOG_TIMER_ROLL 2
#define SEGLOG_TIMER_DELETE 4
#define SEGLOG_TIMER_UNIT_BYTES 52
#define SEGLOG_DEFAULT_SLOT_COUNT 1209600
#define SEGLOG_DEFAULT_PRECISION_MS 1000
#define SEGLOG_TIMER_WHEEL_FILE_BYTES 38707200
#define SEGLOG_DEFAULT_TIMER_LOG_FILE_BYTES 104857600

/* timer_checkpoint */
#define SEGLOG_TIMER_CHECKPOINT_SIZE 56 /* timercheck */
#define SEGLOG_TIMER_CHECKPOINT_LAST_READ_TIMESTAMP_MS_AT 0 /* i64, ms */
#define SEGLOG_TIMER_CHECKPOINT_LAST_FLUSHED_POSITION_AT 8 /* i64, bytes from timer log start */
#define SEGLOG_TIMER_CHECKPOINT_LAST_QUEUE_OFFSET_AT 16 /* i64, messages */
#define SEGLOG_TIMER_CHECKPOINT_MASTER_QUEUE_OFFSET_AT 24 /* i64, messages */
#define SEGLOG_TIMER_CHECKPOINT_STATE_VERSION_AT 32 /* i64 */
#define SEGLOG_TIMER_CHECKPOINT_VERSION_TIMESTAMP_MS_AT 40 /* i64, ms */
#define SEGLOG_TIMER_CHECKPOINT_VERSION_COUNTER_AT 48 /* i64 */
#define SEGLOG_TIMER_CHECKPOINT_FILE_BYTES 4096

/* tombstone */
#define SEGLOG_LOST_FLAG 1280267092
#define SEGLOG_LOST_TAGS_CODE (-447192428)
#define SEGLOG_MAX_FILLER_BYTES 1048576
