// swift-tools-version:6.2
import PackageDescription

// A package of its own, so that Earshot itself does not depend on swift-syntax. Built and run by scripts/mutants.sh.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "mutants",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(url: "https://github.com/swiftlang/swift-syntax.git", exact: "603.0.1")
    ],
    targets: [
        // Finds the places, draws some, rewrites the source: strings in, strings out.
        .target(
            name: "Mutation",
            dependencies: [
                .product(name: "SwiftSyntax", package: "swift-syntax"),
                .product(name: "SwiftParser", package: "swift-syntax"),
                .product(name: "SwiftOperators", package: "swift-syntax"),
            ],
            swiftSettings: settings),
        // Copies the tree, runs the tests, keeps the results.
        .executableTarget(name: "mutants", dependencies: ["Mutation"], swiftSettings: settings),
        .testTarget(name: "MutationTests", dependencies: ["Mutation"], swiftSettings: settings),
    ]
)
