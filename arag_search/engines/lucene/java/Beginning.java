package arag;

import java.io.IOException;
import org.apache.lucene.index.FilteredTermsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.MultiTermQuery;
import org.apache.lucene.search.QueryVisitor;
import org.apache.lucene.util.AttributeSource;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.StringHelper;

/**
 * The words that begin with one, as a PrefixQuery matches them, which makes an automaton for each
 * field. The words are neighbours, so that they need none.
 */
final class Beginning extends MultiTermQuery {
    private final Term term;

    Beginning(Term term) {
        super(term.field(), CONSTANT_SCORE_BLENDED_REWRITE);
        this.term = term;
    }

    @Override
    protected TermsEnum getTermsEnum(Terms terms, AttributeSource attributes) throws IOException {
        return new FilteredTermsEnum(terms.iterator()) {
            {
                setInitialSeekTerm(term.bytes());
            }

            @Override
            protected AcceptStatus accept(BytesRef word) {
                boolean begins = StringHelper.startsWith(word, term.bytes());
                return begins ? AcceptStatus.YES : AcceptStatus.END;
            }
        };
    }

    @Override
    public void visit(QueryVisitor visitor) {
        visitor.visitLeaf(this);
    }

    @Override
    public String toString(String field) {
        return term + "*";
    }

    @Override
    public boolean equals(Object other) {
        return super.equals(other) && term.equals(((Beginning) other).term);
    }

    @Override
    public int hashCode() {
        return 31 * super.hashCode() + term.hashCode();
    }
}
