package arag;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.analysis.tokenattributes.PositionIncrementAttribute;
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
    private final List<Metadata> metadata = new ArrayList<>();
    private final boolean hasForms;
    private ByteBuffer batch;

    /**
     * Write into two indexes, the second of which may be null. metadataKinds has a letter for the
     * type of each metadata field: k(eyword), n(umber), d(ate).
     */
    public Documents(
            IndexWriter chunks,
            IndexWriter sentences,
            Names names,
            String[] metadataNames,
            String metadataKinds) {
        this.chunks = chunks;
        this.sentences = sentences;
        this.hasForms = names.titleForms() != null;
        this.record = new BinaryDocValuesField(names.record(), new BytesRef());
        this.text = new StoredField(names.text(), "");
        this.chunk = new Kind(names.id(), names);
        this.chunk.fields.add(record);
        this.chunk.fields.add(text);
        this.sentence = new Kind(names.chunkId(), names);
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
        String title = string();
        String content = string();
        record.setBytesValue(new BytesRef(bytes()));
        text.setStringValue(content);
        List<IndexableField> values = metadata();
        int[] ends = new int[batch.getInt()];
        for (int i = 0; i < ends.length; i++) {
            ends[i] = batch.getInt();
        }
        String[] titles = new String[hasForms ? batch.getInt() : 0];
        String titleForms = forms();
        chunk.begin(id, documentId, title, titleForms, values);
        chunks.addDocument(chunk.with(ordinal, content, forms()));
        for (int i = 0; i < titles.length; i++) {
            titles[i] = string();
        }
        if (sentences != null) {
            sentence.begin(id, documentId, title, titleForms, values);
        }
        int start = 0;
        int codePoints = 0;
        for (int i = 0; i < ends.length; i++) {
            String sentenceForms = forms();
            if (sentences == null) {
                continue;
            }
            int end = content.offsetByCodePoints(start, ends[i] - codePoints);
            String part = content.substring(start, end);
            if (titles.length > 0) {
                sentence.titleForms.text = titles[i];
            }
            sentences.addDocument(sentence.with(ordinal + i, part, sentenceForms));
            start = end;
            codePoints = ends[i];
        }
    }

    /** Return the next normal forms of the batch; null if words have none. */
    private String forms() {
        return hasForms ? string() : null;
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
            String chunkId,
            String documentId,
            String ordinal,
            String title,
            String content,
            String record,
            String text,
            String titleForms,
            String contentForms) {}

    /** The documents of one of the two indexes: a list of fields that is refilled. */
    private static final class Kind {
        final List<IndexableField> fields = new ArrayList<>();
        private final List<IndexableField> all = new ArrayList<>();
        private final StringField id;
        private final KeywordField documentId;
        private final NumericDocValuesField column;
        private final LongPoint point;
        private final TextField title;
        private final TextField content;
        private final Forms titleForms = new Forms("");
        private final Forms contentForms = new Forms("");

        Kind(String idName, Names names) {
            id = new StringField(idName, "", Field.Store.NO);
            documentId = new KeywordField(names.documentId(), "", Field.Store.NO);
            column = new NumericDocValuesField(names.ordinal(), 0L);
            point = new LongPoint(names.ordinal(), 0L);
            title = new TextField(names.title(), "", Field.Store.NO);
            content = new TextField(names.content(), "", Field.Store.NO);
            fields.add(id);
            fields.add(documentId);
            fields.add(column);
            fields.add(point);
            fields.add(title);
            fields.add(content);
            if (names.titleForms() != null) {
                fields.add(new TextField(names.titleForms(), titleForms));
                fields.add(new TextField(names.contentForms(), contentForms));
            }
        }

        void begin(
                String idValue,
                String document,
                String titleText,
                String forms,
                List<IndexableField> more) {
            titleForms.text = forms;
            id.setStringValue(idValue);
            documentId.setStringValue(document);
            title.setStringValue(titleText);
            all.clear();
            all.addAll(fields);
            all.addAll(more);
        }

        List<IndexableField> with(long ordinal, String text, String forms) {
            contentForms.text = forms;
            column.setLongValue(ordinal);
            point.setLongValue(ordinal);
            content.setStringValue(text);
            return all;
        }
    }

    /** The terms of a text, separated by blanks; a line feed is a gap that no phrase reaches over. */
    public static final class Forms extends TokenStream {
        private static final int GAP = 100;

        String text;
        private final CharTermAttribute term = addAttribute(CharTermAttribute.class);
        private final PositionIncrementAttribute increment =
                addAttribute(PositionIncrementAttribute.class);
        private int at;

        /** Hold a text, which may be replaced between its uses. */
        public Forms(String text) {
            this.text = text;
        }

        @Override
        public void reset() {
            at = 0;
        }

        @Override
        public boolean incrementToken() {
            clearAttributes();
            while (at < text.length()) {
                int start = at;
                while (at < text.length() && text.charAt(at) > ' ') {
                    at++;
                }
                int end = at++;
                if (start > 0 && text.charAt(start - 1) == '\n') {
                    increment.setPositionIncrement(GAP);
                }
                if (end > start) {
                    term.append(text, start, end);
                    return true;
                }
            }
            return false;
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
                case 'k' -> field.setStringValue(string());
                case 'n' -> field.setDoubleValue(batch.getDouble());
                default -> field.setLongValue(batch.getLong());
            }
            return field;
        }

        private Field newField() {
            return switch (kind) {
                case 'k' -> new KeywordField(name, "", Field.Store.NO);
                case 'n' -> new DoubleField(name, 0.0, Field.Store.NO);
                default -> new LongField(name, 0L, Field.Store.NO);
            };
        }
    }
}
