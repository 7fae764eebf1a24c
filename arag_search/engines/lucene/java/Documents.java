package arag;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.document.BinaryDocValuesField;
import org.apache.lucene.document.DoubleField;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.KeywordField;
import org.apache.lucene.document.LongField;
import org.apache.lucene.document.LongPoint;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexableField;
import org.apache.lucene.util.BytesRef;

/**
 * A writer of chunks and their sentences, which Python sends as batches of bytes (see schema.py).
 * Field objects are created once and refilled for every document. Not thread-safe.
 */
public final class Documents {
    private final Kind chunk;
    private final Kind sentence;
    private final IndexWriter chunks;
    private final IndexWriter sentences;
    private final BinaryDocValuesField record;
    private final StoredField text;
    private final String name;
    private final List<Metadata> metadata = new ArrayList<>();
    private final Words words = new Words();
    private ByteBuffer batch;

    /**
     * Write into two indexes, the second of which may be null. metadataKinds has a letter for what
     * the values of each metadata field are stored as: t(erm), d(ouble), l(ong).
     */
    public Documents(
            IndexWriter chunks,
            IndexWriter sentences,
            Names names,
            String[] metadataNames,
            String metadataKinds) {
        this.chunks = chunks;
        this.sentences = sentences;
        this.record = new BinaryDocValuesField(names.record(), new BytesRef());
        this.text = new StoredField(names.text(), "");
        this.name = names.name();
        this.chunk = new Kind(names, true);
        this.chunk.fields.add(record);
        this.chunk.fields.add(text);
        this.sentence = new Kind(names, false);
        for (int i = 0; i < metadataNames.length; i++) {
            metadata.add(new Metadata(metadataNames[i], metadataKinds.charAt(i)));
        }
    }

    /** Add a batch of chunks. */
    public void add(byte[] bytes) throws IOException {
        batch = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        while (batch.hasRemaining()) {
            addChunk();
        }
        batch = null;
    }

    private void addChunk() throws IOException {
        long ordinal = batch.getLong();
        String id = string();
        String documentId = string();
        text.setStringValue(string());
        record.setBytesValue(new BytesRef(bytes()));
        int size = batch.getInt();
        words.read(batch.array(), batch.position(), batch.position() + size);
        batch.position(batch.position() + size);
        List<IndexableField> named = names();
        List<IndexableField> values = metadata();
        int end = 1 + batch.getInt();
        int titles = batch.getInt();
        int numbers = batch.position(); // of the titles of the sentences, if there are any
        batch.position(numbers + (titles == 0 ? 0 : 4 * (end - 1)));
        chunk.begin(id, documentId, values);
        chunk.all.addAll(named);
        boolean isApart = words.texts() == end + titles;
        int first = isApart ? 1 : end + titles;
        chunks.addDocument(chunk.with(ordinal, 0, first, isApart ? end : first + 1));
        if (sentences == null) {
            return;
        }
        sentence.begin(id, documentId, values);
        for (int i = 1; i < end; i++) {
            int title = titles == 0 ? 0 : end + batch.getInt(numbers + 4 * (i - 1));
            sentences.addDocument(sentence.with(ordinal + i - 1, title, i, i + 1));
        }
    }

    private List<IndexableField> names() {
        List<IndexableField> named = new ArrayList<>();
        for (int n = batch.getInt(); n > 0; n--) {
            named.add(new StringField(name, string(), Field.Store.NO));
        }
        return named;
    }

    private List<IndexableField> metadata() {
        List<IndexableField> values = new ArrayList<>();
        for (Metadata field : metadata) {
            int n = batch.getInt();
            for (int i = 0; i < n; i++) {
                values.add(field.next(i));
            }
        }
        return values;
    }

    private String string() {
        int length = batch.getInt();
        String value =
                new String(batch.array(), batch.position(), length, StandardCharsets.UTF_8);
        batch.position(batch.position() + length);
        return value;
    }

    private byte[] bytes() {
        byte[] value = new byte[batch.getInt()];
        batch.get(value);
        return value;
    }

    /** The names of the Lucene fields, which Python defines; the last two may be null. */
    public record Names(
            String id,
            String documentId,
            String ordinal,
            String title,
            String content,
            String record,
            String text,
            String name,
            String titleForms,
            String contentForms) {}

    /** The documents of one of the two indexes: a list of fields that is refilled. */
    private final class Kind {
        final List<IndexableField> fields = new ArrayList<>();
        private final List<IndexableField> all = new ArrayList<>();
        private final StringField id;
        private final KeywordField documentId;
        private final NumericDocValuesField column;
        private final LongPoint point;
        private final List<Words.Stream> titles = new ArrayList<>();
        private final List<Words.Stream> contents = new ArrayList<>();

        Kind(Names names, boolean hasId) {
            id = new StringField(names.id(), "", Field.Store.NO);
            documentId = new KeywordField(names.documentId(), "", Field.Store.NO);
            column = new NumericDocValuesField(names.ordinal(), 0L);
            point = new LongPoint(names.ordinal(), 0L);
            if (hasId) {
                fields.add(id);
            }
            fields.add(documentId);
            fields.add(column);
            fields.add(point);
            add(names.title(), titles, false);
            add(names.content(), contents, false);
            if (names.titleForms() != null) {
                add(names.titleForms(), titles, true);
                add(names.contentForms(), contents, true);
            }
        }

        private void add(String name, List<Words.Stream> streams, boolean forms) {
            streams.add(words.new Stream(forms));
            fields.add(new TextField(name, streams.get(streams.size() - 1)));
        }

        void begin(String idValue, String document, List<IndexableField> more) {
            id.setStringValue(idValue);
            documentId.setStringValue(document);
            all.clear();
            all.addAll(fields);
            all.addAll(more);
        }

        /** Return the fields with the words of a title, and of the texts from first to before end. */
        List<IndexableField> with(long ordinal, int title, int first, int end) {
            column.setLongValue(ordinal);
            point.setLongValue(ordinal);
            titles.forEach(stream -> stream.of(title, title + 1));
            contents.forEach(stream -> stream.of(first, end));
            return all;
        }
    }

    /** A declared metadata field, with a pool of field objects for its values. */
    private final class Metadata {
        private final String name;
        private final char kind;
        private final List<Field> pool = new ArrayList<>();

        Metadata(String name, char kind) {
            this.name = name;
            this.kind = kind;
        }

        /** Read the value with this number from the batch into its field object. */
        Field next(int number) {
            if (number == pool.size()) {
                pool.add(newField());
            }
            Field field = pool.get(number);
            switch (kind) {
                case 't' -> field.setStringValue(string());
                case 'd' -> field.setDoubleValue(batch.getDouble());
                default -> field.setLongValue(batch.getLong());
            }
            return field;
        }

        private Field newField() {
            return switch (kind) {
                case 't' -> new KeywordField(name, "", Field.Store.NO);
                case 'd' -> new DoubleField(name, 0.0, Field.Store.NO);
                default -> new LongField(name, 0L, Field.Store.NO);
            };
        }
    }
}
