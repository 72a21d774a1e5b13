package seglog.spark;

import java.util.Arrays;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.ByteArrayMethods;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The properties of a record: pieces between 0x02 that have a name, 0x01 and a value. Of several with the
 * same name only the last is kept, at its own position.
 */
final class Entries {
    private static final byte NAME_END = 1, ENTRY_END = 2;
    private long[] names = new long[16], values = new long[16];
    private int[] nameBytes = new int[16], valueBytes = new int[16];
    private int count;

    void take(long at, int size) {
        count = 0;
        long end = at + size;
        while (at < end) {
            long nameEnd = 0, stop = at;
            byte one = 0;
            for (; stop < end && (one = Platform.getByte(null, stop)) != ENTRY_END; stop++)
                if (one == NAME_END && nameEnd == 0)
                    nameEnd = stop;
            if (nameEnd > at && nameEnd + 1 < stop)
                add(at, (int) (nameEnd - at), nameEnd + 1, (int) (stop - nameEnd - 1));
            at = stop + 1;
        }
    }

    private void add(long name, int nameSize, long value, int valueSize) {
        int earlier = find(name, nameSize);
        if (earlier >= 0)
            remove(earlier);
        if (count == names.length)
            grow();
        names[count] = name;
        nameBytes[count] = nameSize;
        values[count] = value;
        valueBytes[count++] = valueSize;
    }

    private void remove(int at) {
        int behind = --count - at;
        System.arraycopy(names, at + 1, names, at, behind);
        System.arraycopy(nameBytes, at + 1, nameBytes, at, behind);
        System.arraycopy(values, at + 1, values, at, behind);
        System.arraycopy(valueBytes, at + 1, valueBytes, at, behind);
    }

    private void grow() {
        names = Arrays.copyOf(names, 2 * count);
        values = Arrays.copyOf(values, 2 * count);
        nameBytes = Arrays.copyOf(nameBytes, 2 * count);
        valueBytes = Arrays.copyOf(valueBytes, 2 * count);
    }

    private int find(long name, int size) {
        for (int i = 0; i < count; i++)
            if (nameBytes[i] == size && ByteArrayMethods.arrayEquals(null, names[i], null, name, size))
                return i;
        return -1;
    }

    int count() {
        return count;
    }

    /** Returns the number of the entry of a name, -1 if there is none. */
    int find(byte[] name) {
        for (int i = 0; i < count; i++)
            if (nameBytes[i] == name.length
                    && ByteArrayMethods.arrayEquals(null, names[i], name, Platform.BYTE_ARRAY_OFFSET, name.length))
                return i;
        return -1;
    }

    UTF8String name(int entry) {
        return Text.at(names[entry], nameBytes[entry]);
    }

    UTF8String value(int entry) {
        return Text.at(values[entry], valueBytes[entry]);
    }
}
