package arag;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.BytesTermAttribute;
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
import org.apache.lucene.util.AttributeFactory;
import org.apache.lucene.util.BytesRef;

/**
 * A writer of chunks and their sentences, which Python sends as batches of bytes (see schema.py).
 * Field objects are created once and refilled for every document. Not thread-safe.
 */
public final class Documents {
    private static final int END = 0;
    private static final int HOLE = 1;

    private final Kind chunk;
    private final Kind sentence;
    private final IndexWriter chunks;
    private final IndexWriter sentences;
    private final BinaryDocValuesField record;
    private final StoredField text;
    private final List<Metadata> metadata = new ArrayList<>();
    private final boolean hasForms;
    private ByteBuffer batch;
    private BytesRef[] words;
    private BytesRef[] forms;
    private int[] numbers;
    private int next;

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
        if (hasForms) {
            int different = batch.getInt();
            words = terms(different);
            forms = terms(different);
            numbers = new int[batch.getInt()];
            batch.asIntBuffer().get(numbers);
            batch.position(batch.position() + numbers.length * Integer.BYTES);
            next = 0;
        }
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
        Text titleText = text(title);
        Text[] parts = new Text[ends.length];
        int start = 0;
        int codePoints = 0;
        for (int i = 0; i < ends.length; i++) {
            int end = content.offsetByCodePoints(start, ends[i] - codePoints);
            parts[i] = text(content.substring(start, end));
            start = end;
            codePoints = ends[i];
        }
        chunk.begin(id, documentId, titleText, values);
        boolean goesOn = !hasForms || batch.getInt() == 1;
        chunks.addDocument(chunk.with(ordinal, goesOn ? text(content) : joined(parts)));
        if (sentences != null) {
            sentence.begin(id, documentId, titleText, values);
            for (int i = 0; i < parts.length; i++) {
                sentences.addDocument(sentence.with(ordinal + i, parts[i]));
            }
        }
    }

    /** Return the next text of the batch with its words, or without forms the text alone. */
    private Text text(String text) {
        if (!hasForms) {
            return new Text(text, null, 0, 0, 0);
        }
        int from = next;
        int hole = -1;
        while (numbers[next] != END) {
            if (numbers[next] == HOLE && hole < 0) {
                hole = next;
            }
            next++;
        }
        int to = next++;
        return new Text(text, numbers, from, hole < 0 ? to : hole, to);
    }

    /** Return the words of all texts, then what stands behind the holes of each. */
    private static Text joined(Text[] texts) {
        int length = 0;
        for (Text text : texts) {
            length += text.to - text.from;
        }
        int[] all = new int[length];
        int at = 0;
        for (Text text : texts) {
            System.arraycopy(text.numbers, text.from, all, at, text.hole - text.from);
            at += text.hole - text.from;
        }
        int hole = at;
        for (Text text : texts) {
            System.arraycopy(text.numbers, text.hole, all, at, text.to - text.hole);
            at += text.to - text.hole;
        }
        return new Text("", all, 0, hole, length);
    }

    /** Read so many terms with a line feed between them, as slices of the batch. */
    private BytesRef[] terms(int count) {
        int end = batch.getInt();
        end += batch.position();
        byte[] bytes = batch.array();
        BytesRef[] terms = new BytesRef[count];
        int start = batch.position();
        for (int i = 0; i < count; i++) {
            int stop = start;
            while (stop < end && bytes[stop] != '\n') {
                stop++;
            }
            terms[i] = new BytesRef(bytes, start, stop - start);
            start = stop + 1;
        }
        batch.position(end);
        return terms;
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

    /** A text, with the numbers of its words up to a hole, and of further forms behind it. */
    private record Text(String text, int[] numbers, int from, int hole, int to) {}

    /** The documents of one of the two indexes: a list of fields that is refilled. */
    private final class Kind {
        final List<IndexableField> fields = new ArrayList<>();
        private final List<IndexableField> all = new ArrayList<>();
        private final StringField id;
        private final KeywordField documentId;
        private final NumericDocValuesField column;
        private final LongPoint point;
        private final TextField title;
        private final TextField content;
        private final Words titleWords = new Words();
        private final Words titleForms = new Words();
        private final Words contentWords = new Words();
        private final Words contentForms = new Words();

        Kind(String idName, Names names) {
            id = new StringField(idName, "", Field.Store.NO);
            documentId = new KeywordField(names.documentId(), "", Field.Store.NO);
            column = new NumericDocValuesField(names.ordinal(), 0L);
            point = new LongPoint(names.ordinal(), 0L);
            title = field(names.title(), titleWords);
            content = field(names.content(), contentWords);
            fields.add(id);
            fields.add(documentId);
            fields.add(column);
            fields.add(point);
            fields.add(title);
            fields.add(content);
            if (hasForms) {
                fields.add(new TextField(names.titleForms(), titleForms));
                fields.add(new TextField(names.contentForms(), contentForms));
            }
        }

        void begin(
                String idValue,
                String document,
                Text titleText,
                List<IndexableField> more) {
            id.setStringValue(idValue);
            documentId.setStringValue(document);
            fill(title, titleText, titleWords, titleForms);
            all.clear();
            all.addAll(fields);
            all.addAll(more);
        }

        List<IndexableField> with(long ordinal, Text text) {
            column.setLongValue(ordinal);
            point.setLongValue(ordinal);
            fill(content, text, contentWords, contentForms);
            return all;
        }

        /** Return a field of the words that Python has found or, without forms, Lucene finds. */
        private TextField field(String name, Words stream) {
            return hasForms
                    ? new TextField(name, stream)
                    : new TextField(name, "", Field.Store.NO);
        }

        private void fill(TextField field, Text text, Words ofField, Words ofForms) {
            if (hasForms) {
                ofField.set(words, text.numbers, text.from, text.hole);
                ofForms.set(forms, text.numbers, text.from, text.to);
            } else {
                field.setStringValue(text.text);
            }
        }
    }

    /** The terms of a text by their numbers; a hole is a gap that no phrase reaches over. */
    public static final class Words extends TokenStream {
        private static final int GAP = 100;

        // The default factory would add a term of characters.
        private final BytesTermAttribute term = addAttribute(BytesTermAttribute.class);
        private final PositionIncrementAttribute increment =
                addAttribute(PositionIncrementAttribute.class);
        private BytesRef[] terms;
        private int[] numbers;
        private int from;
        private int to;
        private int at;

        Words() {
            super(AttributeFactory.DEFAULT_ATTRIBUTE_FACTORY);
        }

        /** Hold these terms; an empty one is a hole. */
        public Words(String[] terms) {
            this();
            BytesRef[] all = new BytesRef[terms.length + 2];
            int[] places = new int[terms.length];
            for (int i = 0; i < terms.length; i++) {
                places[i] = terms[i].isEmpty() ? HOLE : i + 2;
                all[i + 2] = new BytesRef(terms[i]);
            }
            set(all, places, 0, places.length);
        }

        void set(BytesRef[] terms, int[] numbers, int from, int to) {
            this.terms = terms;
            this.numbers = numbers;
            this.from = from;
            this.to = to;
        }

        @Override
        public void reset() {
            at = from;
        }

        @Override
        public boolean incrementToken() {
            clearAttributes();
            while (at < to && numbers[at] == HOLE) {
                increment.setPositionIncrement(GAP);
                at++;
            }
            if (at == to) {
                return false;
            }
            term.setBytesRef(terms[numbers[at++]]);
            return true;
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
