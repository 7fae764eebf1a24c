package arag;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.BoostQuery;
import org.apache.lucene.search.DisjunctionMaxQuery;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.Explanation;
import org.apache.lucene.search.FieldDoc;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.QueryVisitor;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Scorer;
import org.apache.lucene.search.ScorerSupplier;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.search.TwoPhaseIterator;
import org.apache.lucene.search.Weight;

/**
 * A query whose score is multiplied, for each of several other queries that match too, by a factor
 * below 1.
 *
 * <p>A factor below 1 leaves every maximum of the scores a maximum. So a whole query is ranked
 * without the factors, and the other queries are looked at in its first documents only (top). If
 * these do not suffice, and within other queries, every block of documents is scored that the search
 * without the factors would score. There, the other queries are looked at only in documents whose
 * score would be high enough without the factors. The product of the factors is in 64 bits, and rounded with the score, which is what a
 * function_score of OpenSearch computes.
 */
final class Demoted extends Query {
    private static final int MORE_RANKED = 8;
    private static final int MOST_RANKED = 16;
    private static final Comparator<ScoreDoc> BY_SCORE =
            Comparator.<ScoreDoc>comparingDouble(hit -> -hit.score)
                    .thenComparingLong(Demoted::ordinalOf);

    private final Query query;
    private final List<Query> lowering;
    private final float[] factors;

    Demoted(Query query, List<Query> lowering, float[] factors) {
        this.query = query;
        this.lowering = lowering;
        this.factors = factors;
    }

    /** Return the query without the factors, which matches the same documents. */
    Query query() {
        return query;
    }

    /** Ranks the documents of a query by score, without the factors. */
    interface Ranking {
        TopDocs first(Query query, int n) throws IOException;
    }

    /**
     * Return a query as one whose scores are all multiplied, with the filters around it inside; null
     * if it is none.
     */
    static Demoted outermost(Query query) {
        if (query instanceof Demoted demoted) {
            return demoted;
        }
        if (!(query instanceof BooleanQuery bool)) {
            return null;
        }
        Demoted demoted = null;
        BooleanQuery.Builder inner = new BooleanQuery.Builder();
        for (BooleanClause clause : bool.clauses()) {
            if (clause.occur() == BooleanClause.Occur.FILTER) {
                inner.add(clause);
            } else if (demoted == null
                    && clause.isRequired()
                    && clause.query() instanceof Demoted scoring) {
                demoted = scoring;
                inner.add(scoring.query, clause.occur());
            } else {
                return null;
            }
        }
        return demoted == null
                ? null
                : new Demoted(inner.build(), demoted.lowering, demoted.factors);
    }

    /**
     * Return the first n documents by the lowered scores. Rank a few more than n without the factors,
     * lower them, and stop if the n-th lowered score is at least the last one before it was lowered.
     * If it is less, rank four times as many. If that fails too, rank all with the factors.
     */
    TopDocs top(int n, IndexSearcher searcher, Ranking ranking) throws IOException {
        Query plain = searcher.rewrite(query);
        List<Lowering> lowering = lowering(searcher);
        int first = n + n / 2 + MORE_RANKED;
        for (int size = first; size <= MOST_RANKED * first; size *= 4) {
            TopDocs ranked = ranking.first(plain, size);
            ScoreDoc[] hits = ranked.scoreDocs;
            boolean all = hits.length < size;
            float lastScore = all ? 0 : scoreOf(hits[size - 1]);
            long lastOrdinal = all ? 0 : ordinalOf(hits[size - 1]);
            lower(hits, lowering, searcher.getIndexReader().leaves());
            if (all || isBefore(hits[n - 1], lastScore, lastOrdinal)) {
                return new TopDocs(ranked.totalHits, Arrays.copyOf(hits, Math.min(n, hits.length)));
            }
        }
        return ranking.first(new Demoted(plain, this.lowering, factors), n);
    }

    private static boolean isBefore(ScoreDoc hit, float score, long ordinal) {
        return hit.score > score || (hit.score == score && ordinalOf(hit) <= ordinal);
    }

    /** Lower the scores of documents, and sort them by score and ordinal. */
    private void lower(
            ScoreDoc[] hits, List<Lowering> lowering, List<LeafReaderContext> leaves)
            throws IOException {
        ScoreDoc[] forwards = hits.clone();
        Arrays.sort(forwards, Comparator.comparingInt(hit -> hit.doc));
        Factors inLeaf = null;
        for (ScoreDoc hit : forwards) {
            LeafReaderContext leaf = leaves.get(ReaderUtil.subIndex(hit.doc, leaves));
            if (inLeaf == null || inLeaf.leaf != leaf) {
                inLeaf = new Factors(lowering, factors, leaf);
            }
            hit.score = inLeaf.lower(scoreOf(hit), hit.doc - leaf.docBase);
            if (hit instanceof FieldDoc sorted) {
                sorted.fields[0] = hit.score;
            }
        }
        Arrays.sort(hits, BY_SCORE);
    }

    /** Return the ordinal of a hit; without one, hits are stored in the order of their ordinals. */
    private static long ordinalOf(ScoreDoc hit) {
        return hit instanceof FieldDoc sorted ? (Long) sorted.fields[1] : hit.doc;
    }

    /** Return the score of a hit, which comes first where hits are sorted by fields. */
    private static float scoreOf(ScoreDoc hit) {
        return hit instanceof FieldDoc sorted ? (Float) sorted.fields[0] : hit.score;
    }

    @Override
    public Query rewrite(IndexSearcher searcher) throws IOException {
        Query rewritten = query.rewrite(searcher);
        boolean changed = rewritten != query;
        List<Query> others = new ArrayList<>(lowering.size());
        for (Query other : lowering) {
            others.add(other.rewrite(searcher));
            changed |= others.get(others.size() - 1) != other;
        }
        return changed ? new Demoted(rewritten, others, factors) : super.rewrite(searcher);
    }

    @Override
    public Weight createWeight(IndexSearcher searcher, ScoreMode mode, float boost)
            throws IOException {
        Weight weight = query.createWeight(searcher, mode, boost);
        if (!mode.needsScores()) {
            return weight;
        }
        return new LoweredWeight(this, weight, lowering(searcher), factors);
    }

    /** What lowers a score by one factor: any of these terms, and any of these queries. */
    private record Lowering(List<Term> terms, List<Weight> weights) {}

    /**
     * Return what lowers scores. Each alternative is asked in turn whether it matches a document. For
     * a few documents, that costs less than a disjunction or the cache of the searcher.
     */
    private List<Lowering> lowering(IndexSearcher searcher) throws IOException {
        List<Lowering> all = new ArrayList<>(lowering.size());
        for (Query other : lowering) {
            Lowering alternatives = new Lowering(new ArrayList<>(), new ArrayList<>());
            List<Query> parts = new ArrayList<>();
            addAlternatives(searcher.rewrite(other), parts);
            for (Query alternative : parts) {
                if (alternative instanceof TermQuery term) {
                    alternatives.terms.add(term.getTerm());
                } else {
                    alternatives.weights.add(
                            alternative.createWeight(
                                    searcher, ScoreMode.COMPLETE_NO_SCORES, 1f));
                }
            }
            all.add(alternatives);
        }
        return all;
    }

    /** Add the queries that a query is any of; their scores do not matter. */
    private static void addAlternatives(Query query, List<Query> parts) {
        if (query instanceof BoostQuery boosted) {
            addAlternatives(boosted.getQuery(), parts);
        } else if (query instanceof DisjunctionMaxQuery any) {
            any.getDisjuncts().forEach(part -> addAlternatives(part, parts));
        } else if (query instanceof BooleanQuery any
                && any.getMinimumNumberShouldMatch() <= 1
                && any.clauses().size() == any.getClauses(BooleanClause.Occur.SHOULD).size()) {
            any.clauses().forEach(clause -> addAlternatives(clause.query(), parts));
        } else {
            parts.add(query);
        }
    }

    @Override
    public void visit(QueryVisitor visitor) {
        query.visit(visitor);
        for (Query other : lowering) {
            other.visit(visitor);
        }
    }

    @Override
    public String toString(String field) {
        return "demoted(" + query.toString(field) + ", " + lowering + ")";
    }

    @Override
    public boolean equals(Object other) {
        return sameClassAs(other) && equalsTo((Demoted) other);
    }

    private boolean equalsTo(Demoted other) {
        return query.equals(other.query)
                && lowering.equals(other.lowering)
                && Arrays.equals(factors, other.factors);
    }

    @Override
    public int hashCode() {
        return 31 * (31 * classHash() + query.hashCode()) + lowering.hashCode();
    }

    private static final class LoweredWeight extends Weight {
        private final Weight weight;
        private final List<Lowering> lowering;
        private final float[] factors;

        LoweredWeight(Query query, Weight weight, List<Lowering> lowering, float[] factors) {
            super(query);
            this.weight = weight;
            this.lowering = lowering;
            this.factors = factors;
        }

        @Override
        public ScorerSupplier scorerSupplier(LeafReaderContext leaf) throws IOException {
            ScorerSupplier supplier = weight.scorerSupplier(leaf);
            return supplier == null
                    ? null
                    : new LoweredSupplier(supplier, new Factors(lowering, factors, leaf));
        }

        @Override
        public int count(LeafReaderContext leaf) throws IOException {
            return weight.count(leaf);
        }

        @Override
        public boolean isCacheable(LeafReaderContext leaf) {
            return weight.isCacheable(leaf);
        }

        @Override
        public Explanation explain(LeafReaderContext leaf, int document) throws IOException {
            Explanation explanation = weight.explain(leaf, document);
            if (!explanation.isMatch()) {
                return explanation;
            }
            Factors own = new Factors(lowering, factors, leaf);
            float score = own.lower(explanation.getValue().floatValue(), document);
            return Explanation.match(score, "multiplied by " + own.at(document), explanation);
        }
    }

    /** The factors of the documents of a segment, asked for in ascending order. */
    private static final class Factors {
        private final List<Lowering> lowering;
        private final float[] factors;
        private final LeafReaderContext leaf;
        private List<List<Candidates>> candidates;
        private int document = -1;
        private double product = 1;

        Factors(List<Lowering> lowering, float[] factors, LeafReaderContext leaf) {
            this.lowering = lowering;
            this.factors = factors;
            this.leaf = leaf;
        }

        /** Return the product of the factors of the queries that match a document. */
        double at(int wanted) throws IOException {
            if (candidates == null) {
                open();
            }
            if (wanted != document) {
                document = wanted;
                product = 1;
                for (int i = 0; i < factors.length; i++) {
                    product *= matches(i) ? factors[i] : 1;
                }
            }
            return product;
        }

        /** Return the score of a document, times its factors. */
        float lower(float score, int wanted) throws IOException {
            return (float) (score * at(wanted));
        }

        private void open() throws IOException {
            candidates = new ArrayList<>(lowering.size());
            for (Lowering alternatives : lowering) {
                List<Candidates> inLeaf = new ArrayList<>();
                addTerms(alternatives.terms, inLeaf);
                for (Weight weight : alternatives.weights) {
                    Scorer scorer = weight.scorer(leaf);
                    if (scorer != null) {
                        inLeaf.add(Candidates.of(scorer));
                    }
                }
                candidates.add(inLeaf);
            }
        }

        /** Look terms up in one pass over each field: a word and its possessives are neighbours. */
        private void addTerms(List<Term> terms, List<Candidates> inLeaf) throws IOException {
            String field = null;
            TermsEnum dictionary = null;
            for (Term term : terms) {
                if (!term.field().equals(field)) {
                    field = term.field();
                    dictionary = Terms.getTerms(leaf.reader(), field).iterator();
                }
                if (dictionary.seekExact(term.bytes())) {
                    PostingsEnum documents = dictionary.postings(null, PostingsEnum.NONE);
                    inLeaf.add(new Candidates(documents, null));
                }
            }
        }

        private boolean matches(int i) throws IOException {
            for (Candidates alternative : candidates.get(i)) {
                if (alternative.match(document)) {
                    return true;
                }
            }
            return false;
        }
    }

    /** Documents that may match, and the check that they do, null if all of them do. */
    private record Candidates(DocIdSetIterator documents, TwoPhaseIterator check) {
        static Candidates of(Scorer scorer) {
            TwoPhaseIterator check = scorer.twoPhaseIterator();
            return new Candidates(check == null ? scorer.iterator() : check.approximation(), check);
        }

        boolean match(int document) throws IOException {
            int at = documents.docID();
            if (at < document) {
                at = documents.advance(document);
            }
            return at == document && (check == null || check.matches());
        }
    }

    private static final class LoweredSupplier extends ScorerSupplier {
        private final ScorerSupplier supplier;
        private final Factors factors;

        LoweredSupplier(ScorerSupplier supplier, Factors factors) {
            this.supplier = supplier;
            this.factors = factors;
        }

        @Override
        public Scorer get(long leadCost) throws IOException {
            return new LoweredScorer(supplier.get(leadCost), factors);
        }

        @Override
        public long cost() {
            return supplier.cost();
        }

        @Override
        public void setTopLevelScoringClause() throws IOException {
            supplier.setTopLevelScoringClause();
        }
    }

    /** Scores that are lowered only if it matters whether they are. */
    private static final class LoweredScorer extends Scorer {
        private final Scorer scorer;
        private final Factors factors;
        private float least = 0;

        LoweredScorer(Scorer scorer, Factors factors) {
            this.scorer = scorer;
            this.factors = factors;
        }

        @Override
        public int docID() {
            return scorer.docID();
        }

        @Override
        public DocIdSetIterator iterator() {
            return scorer.iterator();
        }

        @Override
        public TwoPhaseIterator twoPhaseIterator() {
            return scorer.twoPhaseIterator();
        }

        @Override
        public float score() throws IOException {
            float score = scorer.score();
            // A score below the least one that counts may stay as it is: it does not count.
            return score < least ? score : factors.lower(score, scorer.docID());
        }

        @Override
        public int advanceShallow(int target) throws IOException {
            return scorer.advanceShallow(target);
        }

        @Override
        public float getMaxScore(int upTo) throws IOException {
            return scorer.getMaxScore(upTo);
        }

        @Override
        public void setMinCompetitiveScore(float least) throws IOException {
            this.least = least;
            scorer.setMinCompetitiveScore(least);
        }
    }
}
