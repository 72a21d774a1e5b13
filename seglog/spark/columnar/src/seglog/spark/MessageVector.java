package seglog.spark;

import java.nio.charset.StandardCharsets;
import java.util.Locale;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** A column of messages; its values are read from the log on request. */
abstract class MessageVector extends ColumnVector {
    private static final byte[] KEYS = ascii("KEYS"), TAGS = ascii("TAGS"), UNIQ_KEY = ascii("UNIQ_KEY");
    final LogRows rows;

    MessageVector(DataType type, LogRows rows) {
        super(type);
        this.rows = rows;
    }

    /** Returns whether this class can make a column. */
    static boolean isKnown(StructField field) {
        return field.nullable() && of(field, null) != null;
    }

    /** Returns a column, null if there is none of that name and type. */
    static ColumnVector of(StructField field, LogRows rows) {
        DataType type = field.dataType();
        String name = field.name().toLowerCase(Locale.ROOT);
        if (type.equals(DataTypes.IntegerType))
            return number(name, type, rows);
        if (type.equals(DataTypes.LongType) || type.equals(DataTypes.TimestampType)) {
            boolean isTime = type.equals(DataTypes.TimestampType);
            return switch (name) {
                case "borntimestamp" -> new Time(type, rows) {
                    @Override
                    long milliseconds(int row) {
                        return LogRows.bigLong(rows.record(row) + LogRows.BORN_TIMESTAMP);
                    }
                };
                case "storetimestamp" -> new Time(type, rows) {
                    @Override
                    long milliseconds(int row) {
                        return rows.storeTimestamp(row);
                    }
                };
                default -> isTime ? null : bigNumber(name, type, rows);
            };
        }
        if (type.equals(DataTypes.StringType))
            return text(name, type, rows);
        if (type.equals(DataTypes.BinaryType))
            return bytes(name, type, rows);
        boolean isMap = type.equals(DataTypes.createMapType(DataTypes.StringType, DataTypes.StringType, true));
        return isMap && name.equals("properties") ? new PropertyMap(type, rows) : null;
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static ColumnVector number(String name, DataType type, LogRows rows) {
        return switch (name) {
            case "flag" -> new MessageVector(type, rows) {
                @Override
                public int getInt(int row) {
                    return LogRows.bigInt(rows.record(row) + LogRows.FLAG);
                }
            };
            case "reconsumetimes" -> new MessageVector(type, rows) {
                @Override
                public int getInt(int row) {
                    return LogRows.bigInt(rows.headEnd(row) + LogRows.RECONSUME_TIMES);
                }
            };
            case "queueid" -> new MessageVector(type, rows) {
                @Override
                public int getInt(int row) {
                    return rows.queueId(row);
                }
            };
            case "size" -> new MessageVector(type, rows) {
                @Override
                public int getInt(int row) {
                    return rows.size(row);
                }
            };
            case "sysflag" -> new MessageVector(type, rows) {
                @Override
                public int getInt(int row) {
                    return rows.sysFlag(row);
                }
            };
            default -> null;
        };
    }

    private static ColumnVector bigNumber(String name, DataType type, LogRows rows) {
        return switch (name) {
            case "queueoffset" -> new MessageVector(type, rows) {
                @Override
                public long getLong(int row) {
                    return rows.queueOffset(row);
                }
            };
            case "physicaloffset" -> new MessageVector(type, rows) {
                @Override
                public long getLong(int row) {
                    return rows.physicalOffset(row);
                }
            };
            case "tagscode" -> new MessageVector(type, rows) {
                @Override
                public long getLong(int row) {
                    return rows.tagsCode(row);
                }
            };
            case "bodycrc" -> new MessageVector(type, rows) {
                @Override
                public long getLong(int row) {
                    return Integer.toUnsignedLong(LogRows.bigInt(rows.record(row) + LogRows.BODY_CRC));
                }
            };
            case "preparedtransactionoffset" -> new MessageVector(type, rows) {
                @Override
                public long getLong(int row) {
                    return LogRows.bigLong(rows.headEnd(row) + LogRows.PREPARED);
                }
            };
            default -> null;
        };
    }

    private static ColumnVector text(String name, DataType type, LogRows rows) {
        return switch (name) {
            case "topic" -> new MessageVector(type, rows) {
                @Override
                public UTF8String getUTF8String(int row) {
                    return rows.topic(row);
                }
            };
            case "store" -> new MessageVector(type, rows) {
                @Override
                public UTF8String getUTF8String(int row) {
                    return rows.store();
                }
            };
            case "brokername" -> new MessageVector(type, rows) {
                @Override
                public boolean isNullAt(int row) {
                    return rows.brokerName() == null;
                }

                @Override
                public UTF8String getUTF8String(int row) {
                    return rows.brokerName();
                }
            };
            case "properties" -> new MessageVector(type, rows) {
                @Override
                public UTF8String getUTF8String(int row) {
                    return Text.at(rows.propertiesAt(row), rows.propertiesBytes(row));
                }
            };
            case "keys" -> new Property(type, rows, KEYS);
            case "tags" -> new Property(type, rows, TAGS);
            case "msgid" -> new MessageVector(type, rows) {
                @Override
                public UTF8String getUTF8String(int row) {
                    Entries entries = rows.entries(row);
                    int own = entries.find(UNIQ_KEY);
                    return own >= 0 ? entries.value(own) : Hosts.messageId(rows, row);
                }
            };
            case "offsetmsgid" -> new MessageVector(type, rows) {
                @Override
                public UTF8String getUTF8String(int row) {
                    return Hosts.messageId(rows, row);
                }
            };
            case "bornhost" -> new MessageVector(type, rows) {
                private final Hosts hosts = new Hosts();

                @Override
                public UTF8String getUTF8String(int row) {
                    return hosts.text(rows.record(row) + LogRows.BORN_HOST);
                }
            };
            case "storehost" -> new MessageVector(type, rows) {
                private final Hosts hosts = new Hosts();

                @Override
                public UTF8String getUTF8String(int row) {
                    return hosts.text(rows.storeHost(row));
                }
            };
            default -> null;
        };
    }

    private static ColumnVector bytes(String name, DataType type, LogRows rows) {
        return switch (name) {
            case "body" -> new MessageVector(type, rows) {
                @Override
                public byte[] getBinary(int row) {
                    return copy(rows.headEnd(row), rows.bodyBytes(row));
                }
            };
            case "record" -> new MessageVector(type, rows) {
                @Override
                public byte[] getBinary(int row) {
                    return copy(rows.record(row), rows.size(row));
                }
            };
            case "properties" -> new MessageVector(type, rows) {
                @Override
                public byte[] getBinary(int row) {
                    return copy(rows.propertiesAt(row), rows.propertiesBytes(row));
                }
            };
            default -> null;
        };
    }

    private static byte[] copy(long address, int size) {
        byte[] bytes = new byte[size];
        Platform.copyMemory(null, address, bytes, Platform.BYTE_ARRAY_OFFSET, size);
        return bytes;
    }

    /** A time, null if Python's datetime cannot hold it: bounds as in seglog/spark/source/values/times.py. */
    private abstract static class Time extends MessageVector {
        private static final long EDGE_MS = 2 * 86_400_000L;
        private static final long FIRST_MS = -62_135_596_800_000L + EDGE_MS;
        private static final long END_MS = 253_402_300_800_000L - EDGE_MS;
        private final boolean isTimestamp;

        Time(DataType type, LogRows rows) {
            super(type, rows);
            isTimestamp = type.equals(DataTypes.TimestampType);
        }

        abstract long milliseconds(int row);

        @Override
        public boolean isNullAt(int row) {
            return isTimestamp && (milliseconds(row) < FIRST_MS || milliseconds(row) >= END_MS);
        }

        @Override
        public long getLong(int row) {
            return isTimestamp ? milliseconds(row) * 1000 : milliseconds(row);
        }
    }

    /** The value of a property, null if a record does not have it. */
    private static final class Property extends MessageVector {
        private final byte[] name;

        Property(DataType type, LogRows rows, byte[] name) {
            super(type, rows);
            this.name = name;
        }

        @Override
        public boolean isNullAt(int row) {
            return rows.entries(row).find(name) < 0;
        }

        @Override
        public UTF8String getUTF8String(int row) {
            Entries entries = rows.entries(row);
            int found = entries.find(name);
            return found < 0 ? null : entries.value(found);
        }
    }

    /** All properties as a map; holds the entries of one record at a time. */
    private static final class PropertyMap extends MessageVector {
        private final ColumnVector names, values;

        PropertyMap(DataType type, LogRows rows) {
            super(type, rows);
            names = new MessageVector(DataTypes.StringType, rows) {
                @Override
                public UTF8String getUTF8String(int entry) {
                    return rows.entries.name(entry);
                }
            };
            values = new MessageVector(DataTypes.StringType, rows) {
                @Override
                public UTF8String getUTF8String(int entry) {
                    return rows.entries.value(entry);
                }
            };
        }

        @Override
        public ColumnarMap getMap(int row) {
            return new ColumnarMap(names, values, 0, rows.entries(row).count());
        }
    }

    private UnsupportedOperationException other() {
        return new UnsupportedOperationException("a column of " + dataType().catalogString());
    }

    @Override
    public void close() {}

    @Override
    public boolean hasNull() {
        return true; // not known before the values are read
    }

    @Override
    public int numNulls() {
        throw other();
    }

    @Override
    public boolean isNullAt(int row) {
        return false;
    }

    @Override
    public boolean getBoolean(int row) {
        throw other();
    }

    @Override
    public byte getByte(int row) {
        throw other();
    }

    @Override
    public short getShort(int row) {
        throw other();
    }

    @Override
    public int getInt(int row) {
        throw other();
    }

    @Override
    public long getLong(int row) {
        throw other();
    }

    @Override
    public float getFloat(int row) {
        throw other();
    }

    @Override
    public double getDouble(int row) {
        throw other();
    }

    @Override
    public ColumnarArray getArray(int row) {
        throw other();
    }

    @Override
    public ColumnarMap getMap(int row) {
        throw other();
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
        throw other();
    }

    @Override
    public UTF8String getUTF8String(int row) {
        throw other();
    }

    @Override
    public byte[] getBinary(int row) {
        throw other();
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        throw other();
    }
}
