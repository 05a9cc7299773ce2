import SwiftSyntax

/// Collects every mutant of one file. Operators must be folded, see ``Mutation/mutants(of:file:)``.
final class SiteFinder: SyntaxVisitor {
    private let lines: SourceLines
    private let file: String
    private(set) var mutants: [Mutant] = []

    /// The longest expression that is mutated, in bytes. The compiler must type-check each twice.
    private static let longest = 400
    /// Calls that only reserve memory or deliberately end the process. No test can or should notice a change there.
    private static let unmutatedCalls: Set = [
        "precondition", "preconditionFailure", "assert", "assertionFailure", "fatalError", "reserveCapacity",
    ]
    private static let unmutatedLabels: Set = ["capacity", "minimumCapacity", "initialCapacity"]
    private static let swapped = [
        "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
        "+": "-", "-": "+", "&+": "&-", "&-": "&+", "+=": "-=", "-=": "+=", "&+=": "&-=", "&-=": "&+=",
        "&&": "||", "||": "&&",
    ]

    init(source: String, file: String) {
        self.lines = SourceLines(source)
        self.file = file
        super.init(viewMode: .sourceAccurate)
    }

    // MARK: Places that are not mutated

    override func visit(_ node: AttributeSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    /// Raw values must be literals.
    override func visit(_ node: EnumCaseDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    /// A pattern's literal may decide whether a switch is exhaustive.
    override func visit(_ node: ExpressionPatternSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: GenericArgumentClauseSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: MacroExpansionExprSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    /// Some branches are not compiled on this platform.
    override func visit(_ node: IfConfigDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: LabeledExprSyntax) -> SyntaxVisitorContinueKind {
        Self.unmutatedLabels.contains(node.label?.text ?? "") ? .skipChildren : .visitChildren
    }
    override func visit(_ node: FunctionCallExprSyntax) -> SyntaxVisitorContinueKind {
        let callee = node.calledExpression
        let name = callee.as(MemberAccessExprSyntax.self)?.declName.baseName ?? callee.as(DeclReferenceExprSyntax.self)?.baseName
        return Self.unmutatedCalls.contains(name?.text ?? "") ? .skipChildren : .visitChildren
    }
    /// Equal values hash alike whichever fields are hashed.
    override func visit(_ node: FunctionDeclSyntax) -> SyntaxVisitorContinueKind {
        node.name.text == "hash" ? .skipChildren : .visitChildren
    }

    // MARK: Places that are mutated

    override func visit(_ node: IntegerLiteralExprSyntax) -> SyntaxVisitorContinueKind {
        let text = node.literal.text
        for change in Literal.neighbours(of: text) {
            self.add(.literal, node, plain: (Syntax(node), change), switchable: "(mutant(\(Mutant.idPlaceholder)) ? \(change) : \(text))")
        }
        return .skipChildren
    }

    override func visit(_ node: InfixOperatorExprSyntax) -> SyntaxVisitorContinueKind {
        guard let sign = node.operator.as(BinaryOperatorExprSyntax.self)?.operator, let other = Self.swapped[sign.text] else {
            return .visitChildren
        }
        let kind: Mutant.Kind
        switch sign.text {
        case "&&", "||": kind = .connective
        case "<", "<=", ">", ">=", "==", "!=": kind = .comparison
        default: kind = .arithmetic
        }
        if kind == .arithmetic, [node.leftOperand, node.rightOperand].contains(where: Self.isNoNumber) { return .visitChildren }
        let left = self.lines.text(node.leftOperand)
        let right = self.lines.text(node.rightOperand)
        // Operands of an assignment get no parentheses, because the left one is written to.
        let form = { (sign: String) in
            sign.hasSuffix("=") && kind == .arithmetic ? "(\(left) \(sign) \(right))" : "((\(left)) \(sign) (\(right)))"
        }
        self.add(
            kind, node, plain: (Syntax(sign), other),
            switchable: "(mutant(\(Mutant.idPlaceholder)) ? \(form(other)) : \(form(sign.text)))")
        return .visitChildren
    }

    private static func isNoNumber(_ node: ExprSyntax) -> Bool {
        node.is(StringLiteralExprSyntax.self) || node.is(ArrayExprSyntax.self) || node.is(DictionaryExprSyntax.self)
    }

    override func visit(_ node: GuardStmtSyntax) -> SyntaxVisitorContinueKind {
        for condition in Self.booleans(node.conditions) { self.force(condition, true) }
        return .visitChildren
    }

    override func visit(_ node: WhileStmtSyntax) -> SyntaxVisitorContinueKind {
        for condition in Self.booleans(node.conditions) { self.force(condition, false) }
        return .visitChildren
    }

    override func visit(_ node: IfExprSyntax) -> SyntaxVisitorContinueKind {
        for condition in Self.booleans(node.conditions) {
            if node.elseBody != nil, node.conditions.count == 1 {
                self.negate(condition)
            } else {
                self.force(condition, true)
                self.force(condition, false)
            }
        }
        if let last = node.body.statements.last, case .stmt(let exit) = last.item, Self.isExit(exit) {
            self.add(
                .exit, exit, plain: (Syntax(exit), "{}"), switchable: "if !mutant(\(Mutant.idPlaceholder)) { \(self.lines.text(exit)) }")
        }
        return .visitChildren
    }

    override func visit(_ node: TernaryExprSyntax) -> SyntaxVisitorContinueKind {
        self.negate(node.condition)
        return .visitChildren
    }

    private static func isExit(_ node: StmtSyntax) -> Bool {
        node.is(ReturnStmtSyntax.self) || node.is(ThrowStmtSyntax.self) || node.is(ContinueStmtSyntax.self) || node.is(BreakStmtSyntax.self)
    }

    private static func booleans(_ conditions: ConditionElementListSyntax) -> [ExprSyntax] {
        conditions.compactMap { if case .expression(let condition) = $0.condition { condition } else { nil } }
    }

    private func force(_ condition: ExprSyntax, _ value: Bool) {
        let text = self.lines.text(condition)
        self.add(
            .check, condition, plain: (Syntax(condition), "\(value)"),
            switchable: "(mutant(\(Mutant.idPlaceholder)) ? \(value) : (\(text)))")
    }

    private func negate(_ condition: ExprSyntax) {
        let text = self.lines.text(condition)
        self.add(
            .branch, condition, plain: (Syntax(condition), "!(\(text))"),
            switchable: "negated(\(Mutant.idPlaceholder), (\(text)))")
    }

    private func add(_ kind: Mutant.Kind, _ node: some SyntaxProtocol, plain: (Syntax, String), switchable: String) {
        let range = SourceLines.range(node)
        guard range.count <= Self.longest else { return }
        let changed = SourceLines.range(plain.0)
        let (before, after) = self.lines.around(changed, changedTo: plain.1)
        self.mutants.append(
            Mutant(
                file: self.file, line: self.lines.line(at: changed.lowerBound), kind: kind, before: before, after: after, range: range,
                statement: Self.statement(around: Syntax(node)), switchable: switchable))
    }

    private static func statement(around node: Syntax) -> Range<Int> {
        var around = node
        while !around.is(CodeBlockItemSyntax.self), !around.is(MemberBlockItemSyntax.self), let parent = around.parent { around = parent }
        return SourceLines.range(around)
    }
}
