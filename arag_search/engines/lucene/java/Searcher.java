package arag;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.apache.lucene.index.BinaryDocValues;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.index.StoredFields;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.BoostQuery;
import org.apache.lucene.search.CollectorManager;
import org.apache.lucene.search.DisjunctionMaxQuery;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.FieldDoc;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Scorer;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortField;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.search.TopFieldCollectorManager;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.search.TotalHits;
import org.apache.lucene.search.TwoPhaseIterator;
import org.apache.lucene.search.Weight;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.search.similarities.RawTFSimilarity;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;

/**
 * One open index, searched with one call from Python a search: queries come as text (see Queries),
 * matches go back as arrays of numbers, what they hold as bytes. Threads may share it.
 */
public final class Searcher {
    private static final int CANDIDATES = 64;

    private final DirectoryReader reader;
    private final List<LeafReaderContext> leaves;
    private final Limit limit = new Limit();
    private final IndexSearcher ranked;
    private final IndexSearcher counting;
    private final IndexSearcher heavyRanked;
    private final IndexSearcher heavyCounting;
    private final boolean inOrder;
    private final int maxTotal;
    private final String record;
    private final Set<String> text;
    private final Sort byScore;
    private final Sort byOrdinal;
    private final Sort byOrdinalDown;

    /**
     * Search what a reader holds. Totals are exact up to maxTotal. Where documents lie in order of
     * ordinal (inOrder), equal scores come in that order by themselves.
     */
    public Searcher(
            DirectoryReader reader,
            boolean inOrder,
            int maxTotal,
            String ordinal,
            String record,
            String text)
            throws IOException {
        this.reader = reader;
        this.leaves = reader.leaves();
        this.inOrder = inOrder;
        this.maxTotal = maxTotal;
        this.record = record;
        this.text = Collections.singleton(text);
        DirectoryReader timed = new Limit.TimedReader(reader, limit);
        this.ranked = new Limit.TimedSearcher(reader, limit);
        this.counting = new Limit.TimedSearcher(reader, limit);
        this.heavyRanked = new Limit.TimedSearcher(timed, limit);
        this.heavyCounting = new Limit.TimedSearcher(timed, limit);
        this.counting.setSimilarity(new RawTFSimilarity());
        this.heavyCounting.setSimilarity(new RawTFSimilarity());
        SortField up = new SortField(ordinal, SortField.Type.LONG);
        SortField down = new SortField(ordinal, SortField.Type.LONG, true);
        this.byScore = new Sort(new SortField[] {SortField.FIELD_SCORE, up});
        this.byOrdinal = new Sort(new SortField[] {up});
        this.byOrdinalDown = new Sort(new SortField[] {down});
    }

    /** Rank by BM25 with these parameters from now on. */
    public void useBm25(float k1, float b) {
        ranked.setSimilarity(new BM25Similarity(k1, b));
        heavyRanked.setSimilarity(new BM25Similarity(k1, b));
    }

    /**
     * The first n matches by score, equal and unscored ones by ordinal: how many there are, 1 where
     * that is exact, then of each its document, its score as bits and its ordinal. Nanos are those
     * that the search may take, here and below; 0 is without end.
     */
    public long[] top(String query, int n, boolean scored, long nanos) throws IOException {
        limit.begin(nanos);
        TopDocs top;
        try {
            top = sorted(query, n, scored, false);
        } finally {
            limit.end();
        }
        ScoreDoc[] found = top.scoreDocs;
        long[] flat = new long[2 + 3 * found.length];
        flat[0] = top.totalHits.value();
        flat[1] = isExact(top) ? 1 : 0;
        int at = 2;
        for (ScoreDoc each : found) {
            Object[] fields = ((FieldDoc) each).fields;
            float score = scored ? ((Float) fields[0]).floatValue() : 0f;
            flat[at++] = each.doc;
            flat[at++] = Float.floatToIntBits(score);
            flat[at++] = ((Long) fields[fields.length - 1]).longValue();
        }
        return flat;
    }

    /**
     * The matches from one place to another (from, end) in the order of top, and what they hold: a
     * line of JSON, [how many match, 1 where that is exact, how many lie before end, their scores,
     * their records]; then, withText, their texts without anything between.
     */
    public byte[] page(
            String query,
            int from,
            int end,
            boolean scored,
            boolean frequencies,
            boolean withText,
            long nanos)
            throws IOException {
        limit.begin(nanos);
        TopDocs top;
        try {
            top =
                    scored && inOrder
                            ? plain(query, end, frequencies)
                            : sorted(query, end, scored, frequencies);
        } finally {
            limit.end();
        }
        ScoreDoc[] found = top.scoreDocs;
        int n = Math.max(0, found.length - from);
        int[] documents = new int[n];
        StringBuilder scores = new StringBuilder();
        for (int i = 0; i < n; i++) {
            ScoreDoc each = found[from + i];
            documents[i] = each.doc;
            float score = 0f;
            if (scored) {
                score =
                        each instanceof FieldDoc
                                ? ((Float) ((FieldDoc) each).fields[0]).floatValue()
                                : each.score;
            }
            // As a double, whose digits stand for exactly this float.
            scores.append(i == 0 ? "" : ",").append((double) score);
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream(4096);
        String head =
                "[" + top.totalHits.value() + (isExact(top) ? ",1," : ",0,") + found.length;
        out.write((head + ",[" + scores + "],").getBytes(StandardCharsets.US_ASCII));
        writeRecords(documents, out);
        out.write(']');
        if (withText) {
            writeTexts(documents, out);
        }
        return out.toByteArray();
    }

    /** How many documents match each of several queries, at most maxTotal + 1. */
    public long[] counts(String queries, int howMany, long nanos) throws IOException {
        limit.begin(nanos);
        try {
            // A prefix or a phrase; a word "x" or "p" is taken for one.
            boolean heavy = queries.indexOf("x\0") >= 0 || queries.indexOf("p\0") >= 0;
            IndexSearcher searcher = heavy && limit.isSet() ? heavyRanked : ranked;
            Queries texts = new Queries(queries, searcher);
            long[] counts = new long[howMany];
            for (int i = 0; i < howMany; i++) {
                Query query = searcher.rewrite(texts.next());
                if (!reader.hasDeletions() && atLeast(query) > maxTotal) {
                    counts[i] = maxTotal + 1L;
                    continue;
                }
                counts[i] = count(searcher, query);
            }
            return counts;
        } finally {
            limit.end();
        }
    }

    /** How many documents match a query, however many there are. */
    public int countAll(String text, long nanos) throws IOException {
        Query query = Queries.read(text);
        if (query instanceof BoostQuery) {
            query = ((BoostQuery) query).getQuery();
        }
        if (query instanceof DisjunctionMaxQuery) {
            // Of which Lucene counts two words without reading both to their ends.
            BooleanQuery.Builder any = new BooleanQuery.Builder();
            for (Object each : ((DisjunctionMaxQuery) query).getDisjuncts()) {
                any.add((Query) each, BooleanClause.Occur.SHOULD);
            }
            query = any.build();
        }
        limit.begin(nanos);
        try {
            return ranked.count(query);
        } finally {
            limit.end();
        }
    }

    /** A bound that costs little: how many documents the most frequent word alone finds. */
    private int atLeast(Query query) throws IOException {
        if (query instanceof TermQuery) {
            return ((TermQuery) query).getTermStates().docFreq();
        }
        if (query instanceof BoostQuery) {
            return atLeast(((BoostQuery) query).getQuery());
        }
        int most = 0;
        if (query instanceof DisjunctionMaxQuery) {
            for (Object each : ((DisjunctionMaxQuery) query).getDisjuncts()) {
                most = Math.max(most, atLeast((Query) each));
            }
        } else if (query instanceof BooleanQuery) {
            for (Object each : ((BooleanQuery) query).clauses()) {
                BooleanClause clause = (BooleanClause) each;
                if (clause.occur() != BooleanClause.Occur.SHOULD) {
                    return 0;
                }
                most = Math.max(most, atLeast(clause.query()));
            }
        }
        return most;
    }

    /** Stops as soon as there are too many to be counted; no score is computed. */
    private long count(IndexSearcher searcher, Query query) throws IOException {
        Weight weight = searcher.createWeight(query, ScoreMode.COMPLETE_NO_SCORES, 1f);
        long most = maxTotal + 1L;
        long count = 0;
        for (Object each : searcher.getIndexReader().leaves()) {
            LeafReaderContext leaf = (LeafReaderContext) each;
            limit.check();
            int known = weight.count(leaf);
            Scorer scorer = known < 0 ? weight.scorer(leaf) : null;
            if (known > 0) {
                count += known;
            } else if (scorer != null) {
                count += count(scorer, leaf.reader().getLiveDocs(), most - count);
            }
            if (count >= most) {
                return most;
            }
        }
        return count;
    }

    private long count(Scorer scorer, Bits live, long most) throws IOException {
        TwoPhaseIterator phases = scorer.twoPhaseIterator();
        DocIdSetIterator candidates = phases == null ? scorer.iterator() : phases.approximation();
        long count = 0;
        for (int steps = 1; count < most; steps++) {
            int document = candidates.nextDoc();
            if (document == DocIdSetIterator.NO_MORE_DOCS) {
                break;
            }
            if ((live == null || live.get(document)) && (phases == null || phases.matches())) {
                count++;
            }
            if (steps % CANDIDATES == 0) {
                limit.check();
            }
        }
        return count;
    }

    /**
     * The n matches after a place in order of ordinal, each as document and ordinal. A place is
     * such a pair; that of the start is document -1.
     */
    public long[] after(String query, int document, long ordinal, int n) throws IOException {
        FieldDoc place =
                document < 0
                        ? null
                        : new FieldDoc(document, 0f, new Object[] {Long.valueOf(ordinal)});
        TopFieldCollectorManager manager = new TopFieldCollectorManager(byOrdinal, n, place, n);
        ScoreDoc[] found = ((TopDocs) ranked.search(Queries.read(query), manager)).scoreDocs;
        long[] flat = new long[2 * found.length];
        for (int i = 0; i < found.length; i++) {
            flat[2 * i] = found[i].doc;
            flat[2 * i + 1] = ((Long) ((FieldDoc) found[i]).fields[0]).longValue();
        }
        return flat;
    }

    /** The match with the greatest ordinal; -1 where there is none. */
    public int last(String query) throws IOException {
        TopFieldCollectorManager manager =
                new TopFieldCollectorManager(byOrdinalDown, 1, null, 1);
        ScoreDoc[] found = ((TopDocs) ranked.search(Queries.read(query), manager)).scoreDocs;
        return found.length == 0 ? -1 : found[0].doc;
    }

    /** What documents hold: a line of JSON, the list of their records; then their texts. */
    public byte[] read(long[] documents, boolean withText) throws IOException {
        int[] numbers = new int[documents.length];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = (int) documents[i];
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream(4096);
        writeRecords(numbers, out);
        if (withText) {
            writeTexts(numbers, out);
        }
        return out.toByteArray();
    }

    private TopDocs plain(String query, int n, boolean frequencies) throws IOException {
        TopScoreDocCollectorManager manager =
                new TopScoreDocCollectorManager(atMostAll(n), null, maxTotal);
        return search(query, frequencies, manager);
    }

    private TopDocs sorted(String query, int n, boolean scored, boolean frequencies)
            throws IOException {
        TopFieldCollectorManager manager =
                new TopFieldCollectorManager(
                        scored ? byScore : byOrdinal, atMostAll(n), null, maxTotal);
        return search(query, frequencies, manager);
    }

    private TopDocs search(String text, boolean frequencies, CollectorManager manager)
            throws IOException {
        Queries texts = new Queries(text, null);
        Query query = texts.next();
        IndexSearcher searcher = frequencies ? counting : ranked;
        if (texts.isHeavy() && limit.isSet()) {
            searcher = frequencies ? heavyCounting : heavyRanked;
        }
        return (TopDocs) searcher.search(query, manager);
    }

    /** Lucene makes room for all that are asked for. */
    private int atMostAll(int n) {
        return Math.min(n, Math.max(1, reader.maxDoc()));
    }

    private boolean isExact(TopDocs top) {
        return top.totalHits.value() <= maxTotal
                || top.totalHits.relation() == TotalHits.Relation.EQUAL_TO;
    }

    private void writeRecords(int[] documents, ByteArrayOutputStream out) throws IOException {
        out.write('[');
        LeafReaderContext leaf = null;
        BinaryDocValues values = null;
        for (int i = 0; i < documents.length; i++) {
            LeafReaderContext here = leafOf(documents[i]);
            int number = documents[i] - here.docBase;
            // A column is read forwards only.
            if (values == null || here != leaf || number < values.docID()) {
                leaf = here;
                values = here.reader().getBinaryDocValues(record);
            }
            if (values.docID() < number) {
                values.advance(number); // every document has one
            }
            BytesRef found = values.binaryValue();
            if (i > 0) {
                out.write(',');
            }
            out.write(found.bytes, found.offset, found.length);
        }
        out.write(']');
    }

    private void writeTexts(int[] documents, ByteArrayOutputStream out) throws IOException {
        out.write('\n');
        StoredFields stored = ranked.storedFields();
        String name = (String) text.iterator().next();
        for (int each : documents) {
            out.write(stored.document(each, text).get(name).getBytes(StandardCharsets.UTF_8));
        }
    }

    private LeafReaderContext leafOf(int document) {
        return (LeafReaderContext) leaves.get(ReaderUtil.subIndex(document, leaves));
    }
}
