package seglog.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import sun.nio.ch.DirectBuffer;

/**
 * The rows of a frame, and their records in the mapped log.
 *
 * <p>Python has walked and verified the records. Sizes within a record are checked against its own size here
 * nevertheless, because a log may be overwritten while it is read. The garbage collector unmaps a map once
 * no value refers to its bytes.
 */
final class LogRows {
    /** Fields of a row, in the layout of {@code ROW} in {@code seglog/storage/kernels/walk.py}. */
    private static final int PHY_OFFSET = 0, QUEUE_OFFSET = 8, TAGS_CODE = 16, STORE_TIMESTAMP = 24, SIZE = 32,
            QUEUE = 36, SYS_FLAG = 40, ROW_BYTES = 44;
    /** Fields of a record up to its first address. */
    static final int MAGIC = 4, BODY_CRC = 8, FLAG = 16, BORN_TIMESTAMP = 40, BORN_HOST = 48;
    private static final int OWN_OFFSET = 28, OWN_SYS_FLAG = 36;
    /** Fields after the addresses, relative to the end of the head. */
    static final int RECONSUME_TIMES = -16, PREPARED = -12, BODY_BYTES = -4;
    private static final int MAGIC_V2 = 0xDAA320AB, BORN_V6 = 1 << 4, STORE_V6 = 1 << 5;
    private static final int HEAD_BYTES = 88, MORE_OF_V6 = 12, PORT_BYTES = 4, TIME_BYTES = 8;
    private static final long MAP_BYTES = 256L << 20;
    private static final long FRAME = Platform.BYTE_ARRAY_OFFSET;

    final Entries entries = new Entries();
    private final List<UTF8String> topics = new ArrayList<>();
    private int[] queueIds = new int[16];
    private byte[] frame;
    private long rowsAt;
    private String path = "";
    private MappedByteBuffer map;
    private long mapStart, mapEnd, addressOfLog;
    private UTF8String store, brokerName;
    private int parsedHead = -1, parsedEntries = -1;
    private long headEnd, bodyBytes, propertiesAt;
    private int propertiesBytes;

    /** Reads a frame; returns the number of its rows. */
    int take(byte[] bytes, ByteBuffer reading) throws IOException {
        String file = text(reading);
        long fileStart = reading.getLong();
        store = UTF8String.fromString(text(reading));
        brokerName = reading.get() == 0 ? null : UTF8String.fromString(text(reading));
        for (int left = reading.getInt(); left > 0; left--) {
            if (topics.size() == queueIds.length)
                queueIds = java.util.Arrays.copyOf(queueIds, 2 * queueIds.length);
            queueIds[topics.size()] = reading.getInt();
            topics.add(UTF8String.fromString(text(reading)));
        }
        int count = reading.getInt();
        frame = bytes;
        rowsAt = FRAME + reading.position();
        parsedHead = parsedEntries = -1;
        if ((long) count * ROW_BYTES != reading.remaining() || count == 0)
            throw new IOException("a frame has " + reading.remaining() + " bytes for " + count + " rows");
        show(file, fileStart, physicalOffset(0), physicalOffset(count - 1) + size(count - 1));
        demandSame(0);
        demandSame(count - 1);
        return count;
    }

    private static String text(ByteBuffer reading) {
        byte[] bytes = new byte[reading.getInt()];
        reading.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private void show(String file, long fileStart, long start, long end) throws IOException {
        if (!file.equals(path) || start < mapStart || end > mapEnd) {
            try (FileChannel channel = FileChannel.open(Path.of(file), StandardOpenOption.READ)) {
                long size = Math.min(channel.size() - (start - fileStart), Math.max(MAP_BYTES, end - start));
                if (size < end - start)
                    throw changed(start);
                map = channel.map(FileChannel.MapMode.READ_ONLY, start - fileStart, size);
                path = file;
                mapStart = start;
                mapEnd = start + size;
            } catch (NoSuchFileException error) {
                throw new IllegalStateException(file + " was taken away while it was read: read it again", error);
            }
        }
        if (start < mapStart || end > mapEnd || start > end)
            throw changed(start);
        addressOfLog = ((DirectBuffer) map).address() - mapStart;
    }

    /**
     * Checks that a record is the one that Python has verified. Python reads in the folder that it has
     * opened. If a compaction or a restore has exchanged the folders since, the file of that name belongs to
     * another log.
     */
    private void demandSame(int row) {
        long at = record(row);
        long time = at + BORN_HOST + hostBytes(sysFlag(row), BORN_V6);
        if (time + TIME_BYTES > at + size(row) || bigInt(at) != size(row)
                || bigLong(at + OWN_OFFSET) != physicalOffset(row) || bigInt(at + OWN_SYS_FLAG) != sysFlag(row)
                || bigLong(time) != storeTimestamp(row))
            throw changed(physicalOffset(row));
    }

    private static IllegalStateException changed(long phyOffset) {
        return new IllegalStateException(
                "the record at " + phyOffset + " of the log was changed while it was read: read it again");
    }

    private long ofRow(int row, int field) {
        return rowsAt + (long) row * ROW_BYTES + field;
    }

    long physicalOffset(int row) {
        return Platform.getLong(frame, ofRow(row, PHY_OFFSET));
    }

    long queueOffset(int row) {
        return Platform.getLong(frame, ofRow(row, QUEUE_OFFSET));
    }

    long tagsCode(int row) {
        return Platform.getLong(frame, ofRow(row, TAGS_CODE));
    }

    long storeTimestamp(int row) {
        return Platform.getLong(frame, ofRow(row, STORE_TIMESTAMP));
    }

    int size(int row) {
        return Platform.getInt(frame, ofRow(row, SIZE));
    }

    int sysFlag(int row) {
        return Platform.getInt(frame, ofRow(row, SYS_FLAG));
    }

    UTF8String topic(int row) {
        return topics.get(Platform.getInt(frame, ofRow(row, QUEUE)));
    }

    int queueId(int row) {
        return queueIds[Platform.getInt(frame, ofRow(row, QUEUE))];
    }

    UTF8String store() {
        return store;
    }

    UTF8String brokerName() {
        return brokerName;
    }

    /** Returns the address of the record. */
    long record(int row) {
        long start = physicalOffset(row), end = start + size(row);
        if (start < mapStart || end > mapEnd || end - start < HEAD_BYTES)
            throw changed(start);
        return addressOfLog + start;
    }

    /** Returns the address at which its head ends and its body begins. */
    long headEnd(int row) {
        take(row);
        return headEnd;
    }

    int bodyBytes(int row) {
        take(row);
        return (int) bodyBytes;
    }

    long propertiesAt(int row) {
        take(row);
        return propertiesAt;
    }

    int propertiesBytes(int row) {
        take(row);
        return propertiesBytes;
    }

    Entries entries(int row) {
        if (parsedEntries != row) {
            take(row);
            entries.take(propertiesAt, propertiesBytes);
            parsedEntries = row;
        }
        return entries;
    }

    long storeHost(int row) {
        return record(row) + BORN_HOST + hostBytes(sysFlag(row), BORN_V6) + TIME_BYTES;
    }

    int storeHostBytes(int row) {
        return hostBytes(sysFlag(row), STORE_V6);
    }

    private static int hostBytes(int sysFlag, int wide) {
        return PORT_BYTES + 4 + ((sysFlag & wide) == 0 ? 0 : MORE_OF_V6);
    }

    private void take(int row) {
        if (parsedHead == row)
            return;
        long at = record(row), end = at + size(row);
        int flags = sysFlag(row);
        long head = at + HEAD_BYTES + ((flags & BORN_V6) == 0 ? 0 : MORE_OF_V6)
                + ((flags & STORE_V6) == 0 ? 0 : MORE_OF_V6);
        boolean isLong = bigInt(at + MAGIC) == MAGIC_V2;
        int lengthBytes = isLong ? 2 : 1;
        if (head > end)
            throw changed(physicalOffset(row));
        long body = bigInt(head + BODY_BYTES), topic = head + body;
        if (body < 0 || topic + lengthBytes > end)
            throw changed(physicalOffset(row));
        long properties = topic + lengthBytes + (isLong ? bigShort(topic) : Platform.getByte(null, topic) & 0xFF);
        if (properties + 2 > end || properties + 2 + bigShort(properties) > end)
            throw changed(physicalOffset(row));
        headEnd = head;
        bodyBytes = body;
        propertiesAt = properties + 2;
        propertiesBytes = bigShort(properties);
        parsedHead = row;
    }

    static long bigLong(long at) {
        return Long.reverseBytes(Platform.getLong(null, at));
    }

    static int bigInt(long at) {
        return Integer.reverseBytes(Platform.getInt(null, at));
    }

    private static int bigShort(long at) {
        return (Platform.getByte(null, at) & 0xFF) << 8 | Platform.getByte(null, at + 1) & 0xFF;
    }
}
