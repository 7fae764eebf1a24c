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
import org.apache.lucene.search.Collector;
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
 * An open index that Python searches with one call per search: queries come as text (see Queries),
 * matches are returned as arrays of numbers, and their contents as bytes. Thread-safe.
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
    private final Columns columns;
    private final boolean inOrder;
    private final int maxTotal;
    private final String ordinal;
    private final String record;
    private final Set<String> text;
    private final SortField up;
    private final Sort byScore;
    private final Sort byOrdinal;
    private final Sort byOrdinalDown;

    /**
     * Search the index of a reader. Totals are exact up to maxTotal. If documents are stored in
     * order of ordinal (inOrder), Lucene returns equal scores in that order without a sort.
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
        this.columns = new Columns(reader, limit);
        this.inOrder = inOrder;
        this.maxTotal = maxTotal;
        this.ordinal = ordinal;
        this.record = record;
        this.text = Collections.singleton(text);
        DirectoryReader timed = new Limit.TimedReader(reader, limit);
        this.ranked = new Limit.TimedSearcher(reader, limit);
        this.counting = new Limit.TimedSearcher(reader, limit);
        this.heavyRanked = new Limit.TimedSearcher(timed, limit);
        this.heavyCounting = new Limit.TimedSearcher(timed, limit);
        this.counting.setSimilarity(new RawTFSimilarity());
        this.heavyCounting.setSimilarity(new RawTFSimilarity());
        this.up = new SortField(ordinal, SortField.Type.LONG);
        SortField down = new SortField(ordinal, SortField.Type.LONG, true);
        this.byScore = new Sort(SortField.FIELD_SCORE, up);
        this.byOrdinal = new Sort(up);
        this.byOrdinalDown = new Sort(down);
    }

    /** Rank by BM25 with these parameters from now on. */
    public void useBm25(float k1, float b) {
        ranked.setSimilarity(new BM25Similarity(k1, b));
        heavyRanked.setSimilarity(new BM25Similarity(k1, b));
    }

    /**
     * Return the first n matches by score, equal and unscored matches by ordinal: the total, 1 if it
     * is exact (else 0), then the document, the score as bits and the ordinal of each match. Here and
     * below, sort is that of Columns and precedes the score, or is empty; nanos is the time that the
     * search may take; 0 means no limit.
     */
    public long[] top(String query, int n, boolean scored, String sort, long nanos)
            throws IOException {
        limit.begin(nanos);
        TopDocs top;
        try {
            top = sorted(query, n, scored, sort, false);
        } finally {
            limit.end();
        }
        ScoreDoc[] hits = top.scoreDocs;
        long[] flat = new long[2 + 3 * hits.length];
        flat[0] = top.totalHits.value();
        flat[1] = isExact(top) ? 1 : 0;
        int at = 2;
        for (ScoreDoc hit : hits) {
            Object[] fields = ((FieldDoc) hit).fields;
            flat[at++] = hit.doc;
            flat[at++] = Float.floatToIntBits(scoreOf(hit, scored));
            flat[at++] = (Long) fields[fields.length - 1];
        }
        return flat;
    }

    /**
     * Return the first n matches in the order of top, of which at most so many have the same term in
     * the field group, and one has the same ordinal without its last memberBits. The form is that of
     * top; the total counts all matches, exactly.
     */
    public long[] topPerGroup(
            String query,
            int n,
            boolean scored,
            String sort,
            String group,
            int most,
            int memberBits,
            long nanos)
            throws IOException {
        limit.begin(nanos);
        PerDocument collector;
        List<PerDocument.Entry> entries;
        try {
            Columns.Column column = sort.isEmpty() ? null : columns.ofSort(sort);
            Columns.Column groups = columns.ofGroups(group);
            collector =
                    new PerDocument(n, scored, most, memberBits, column, groups, ordinal);
            entries = search(query, false, new SingleCollector<>(collector)).first();
        } finally {
            limit.end();
        }
        long[] flat = new long[2 + 3 * entries.size()];
        flat[0] = collector.total();
        flat[1] = 1;
        int at = 2;
        for (PerDocument.Entry entry : entries) {
            flat[at++] = entry.document;
            flat[at++] = Float.floatToIntBits(entry.score);
            flat[at++] = entry.ordinal;
        }
        return flat;
    }

    /**
     * Return the values of fields in the documents that match a query, or in all if it is empty: the
     * number of documents, then what Fields writes for each field. The fields are words that end in
     * U+0000 and begin with a letter for their type: t(ext), k(eyword) or p(oint).
     */
    public byte[] fieldValues(String query, String fields, int most, long nanos)
            throws IOException {
        limit.begin(nanos);
        try {
            ByteArrayOutputStream out = new ByteArrayOutputStream(1024);
            boolean all = query.isEmpty() && !reader.hasDeletions();
            Query matched = all ? null : Queries.read(query.isEmpty() ? "*\0" : query);
            Fields values = new Fields(ranked, reader, limit, matched, out);
            values.writeDocuments();
            for (int at = 0; at < fields.length(); ) {
                int end = fields.indexOf(0, at);
                String field = fields.substring(at + 1, end);
                switch (fields.charAt(at)) {
                    case 't':
                        values.writeText(field);
                        break;
                    case 'k':
                        values.writeTerms(field, most);
                        break;
                    default:
                        values.writePoints(field);
                }
                at = end + 1;
            }
            return out.toByteArray();
        } finally {
            limit.end();
        }
    }

    /**
     * Return the matches with ranks from (inclusive) to end (exclusive) in the order of top, with
     * their contents: a line of JSON, [total, 1 if it is exact, number of matches before end,
     * scores, records]; then, withText, the texts one after another without separators.
     */
    public byte[] page(
            String query,
            int from,
            int end,
            boolean scored,
            boolean frequencies,
            boolean withText,
            String sort,
            long nanos)
            throws IOException {
        limit.begin(nanos);
        TopDocs top;
        try {
            top =
                    scored && inOrder && sort.isEmpty()
                            ? plain(query, end, frequencies)
                            : sorted(query, end, scored, sort, frequencies);
        } finally {
            limit.end();
        }
        ScoreDoc[] hits = top.scoreDocs;
        int n = Math.max(0, hits.length - from);
        int[] documents = new int[n];
        StringBuilder scores = new StringBuilder();
        for (int i = 0; i < n; i++) {
            ScoreDoc hit = hits[from + i];
            documents[i] = hit.doc;
            // As a double, whose digits represent exactly this float.
            scores.append(i == 0 ? "" : ",").append((double) scoreOf(hit, scored));
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream(4096);
        String head =
                "[" + top.totalHits.value() + (isExact(top) ? ",1," : ",0,") + hits.length;
        out.write((head + ",[" + scores + "],").getBytes(StandardCharsets.US_ASCII));
        writeRecords(documents, out);
        out.write(']');
        if (withText) {
            writeTexts(documents, out);
        }
        return out.toByteArray();
    }

    /** Count the documents that match each of several queries, up to maxTotal + 1. */
    public long[] counts(String queries, int howMany, long nanos) throws IOException {
        limit.begin(nanos);
        try {
            // A prefix or a phrase; the words "x" and "p" count as such too.
            boolean heavy = queries.indexOf("x\0") >= 0 || queries.indexOf("p\0") >= 0;
            IndexSearcher searcher = heavy && limit.isSet() ? heavyRanked : ranked;
            Queries parsed = new Queries(queries, searcher);
            long[] counts = new long[howMany];
            for (int i = 0; i < howMany; i++) {
                Query query = searcher.rewrite(parsed.next());
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

    /** Count all documents that match a query. */
    public int countAll(String text, long nanos) throws IOException {
        Query query = Queries.read(text);
        if (query instanceof BoostQuery boost) {
            query = boost.getQuery();
        }
        if (query instanceof DisjunctionMaxQuery disjunction) {
            // Lucene can count a Boolean query of two terms without reading both to their ends.
            BooleanQuery.Builder any = new BooleanQuery.Builder();
            for (Query disjunct : disjunction.getDisjuncts()) {
                any.add(disjunct, BooleanClause.Occur.SHOULD);
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

    /** Return a cheap lower bound: the number of documents with the most frequent term. */
    private int atLeast(Query query) throws IOException {
        if (query instanceof TermQuery term) {
            return term.getTermStates().docFreq();
        }
        if (query instanceof BoostQuery boost) {
            return atLeast(boost.getQuery());
        }
        if (query instanceof Demoted demoted) {
            return atLeast(demoted.query());
        }
        int most = 0;
        if (query instanceof DisjunctionMaxQuery disjunction) {
            for (Query disjunct : disjunction.getDisjuncts()) {
                most = Math.max(most, atLeast(disjunct));
            }
        } else if (query instanceof BooleanQuery bool) {
            for (BooleanClause clause : bool.clauses()) {
                if (clause.occur() != BooleanClause.Occur.SHOULD) {
                    return 0;
                }
                most = Math.max(most, atLeast(clause.query()));
            }
        }
        return most;
    }

    /** Count matches up to maxTotal + 1, without computing scores. */
    private long count(IndexSearcher searcher, Query query) throws IOException {
        Weight weight = searcher.createWeight(query, ScoreMode.COMPLETE_NO_SCORES, 1f);
        long most = maxTotal + 1L;
        long count = 0;
        for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
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
     * Return the n matches after a position in order of ordinal, each as document and ordinal. A
     * position is such a pair; the start is document -1.
     */
    public long[] after(String query, int document, long ordinal, int n) throws IOException {
        FieldDoc position =
                document < 0
                        ? null
                        : new FieldDoc(document, 0f, new Object[] {ordinal});
        TopFieldCollectorManager manager = new TopFieldCollectorManager(byOrdinal, n, position, n);
        ScoreDoc[] hits = ranked.search(Queries.read(query), manager).scoreDocs;
        long[] flat = new long[2 * hits.length];
        for (int i = 0; i < hits.length; i++) {
            flat[2 * i] = hits[i].doc;
            flat[2 * i + 1] = (Long) ((FieldDoc) hits[i]).fields[0];
        }
        return flat;
    }

    /** Return the match with the greatest ordinal, or -1 if nothing matches. */
    public int last(String query) throws IOException {
        TopFieldCollectorManager manager =
                new TopFieldCollectorManager(byOrdinalDown, 1, null, 1);
        ScoreDoc[] hits = ranked.search(Queries.read(query), manager).scoreDocs;
        return hits.length == 0 ? -1 : hits[0].doc;
    }

    /** Return a line of JSON, the list of the records of documents; then, withText, their texts. */
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

    /** Return the first n matches by score, those with equal scores as they are stored. */
    private TopDocs plain(String text, int n, boolean frequencies) throws IOException {
        Asked asked = asked(text, frequencies);
        return byScore(
                asked,
                n,
                (query, size) ->
                        asked.searcher.search(
                                query,
                                new TopScoreDocCollectorManager(atMostAll(size), null, maxTotal)));
    }

    private TopDocs sorted(
            String text, int n, boolean scored, String sort, boolean frequencies)
            throws IOException {
        Asked asked = asked(text, frequencies);
        if (sort.isEmpty() && scored) {
            return byScore(
                    asked, n, (query, size) -> sorted(asked.searcher, query, size, byScore));
        }
        Sort order = byOrdinal;
        if (!sort.isEmpty()) {
            SortField first = columns.ofSort(sort).sortField();
            order = scored ? new Sort(first, SortField.FIELD_SCORE, up) : new Sort(first, up);
        }
        return sorted(asked.searcher, asked.query, n, order);
    }

    private TopDocs sorted(IndexSearcher searcher, Query query, int n, Sort order)
            throws IOException {
        return searcher.search(
                query, new TopFieldCollectorManager(order, atMostAll(n), null, maxTotal));
    }

    /** Return the first n matches of a ranking, which knows nothing of a DEMOTE of all matches. */
    private static TopDocs byScore(Asked asked, int n, Demoted.Ranking ranking)
            throws IOException {
        Demoted demoted = Demoted.outermost(asked.query);
        return demoted == null
                ? ranking.first(asked.query, n)
                : demoted.top(n, asked.searcher, ranking);
    }

    /** Return the score of a hit, which precedes the ordinal where hits are sorted. */
    private static float scoreOf(ScoreDoc hit, boolean scored) {
        if (!scored) {
            return 0f;
        }
        return hit instanceof FieldDoc sorted
                ? (Float) sorted.fields[sorted.fields.length - 2]
                : hit.score;
    }

    private <C extends Collector, T> T search(
            String text, boolean frequencies, CollectorManager<C, T> manager) throws IOException {
        Asked asked = asked(text, frequencies);
        return asked.searcher.search(asked.query, manager);
    }

    /** A query, and the searcher that searches for it within the limit of time. */
    private record Asked(Query query, IndexSearcher searcher) {}

    private Asked asked(String text, boolean frequencies) {
        Queries queries = new Queries(text, null);
        Query query = queries.next();
        if (queries.isHeavy() && limit.isSet()) {
            return new Asked(query, frequencies ? heavyCounting : heavyRanked);
        }
        return new Asked(query, frequencies ? counting : ranked);
    }

    /** Limit n to the size of the index, since Lucene allocates room for n hits. */
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
            // Doc values can only be read forwards.
            if (values == null || here != leaf || number < values.docID()) {
                leaf = here;
                values = here.reader().getBinaryDocValues(record);
            }
            if (values.docID() < number) {
                values.advance(number); // every document has a record
            }
            BytesRef value = values.binaryValue();
            if (i > 0) {
                out.write(',');
            }
            out.write(value.bytes, value.offset, value.length);
        }
        out.write(']');
    }

    private void writeTexts(int[] documents, ByteArrayOutputStream out) throws IOException {
        out.write('\n');
        StoredFields stored = ranked.storedFields();
        String name = text.iterator().next();
        for (int document : documents) {
            out.write(stored.document(document, text).get(name).getBytes(StandardCharsets.UTF_8));
        }
    }

    private LeafReaderContext leafOf(int document) {
        return leaves.get(ReaderUtil.subIndex(document, leaves));
    }
}
