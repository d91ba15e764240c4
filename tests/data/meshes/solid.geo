// Two unit cubes side by side. See README.md.
lc = 1;
Point(1) = {0, 0, 0, lc}; Point(2) = {1, 0, 0, lc}; Point(3) = {1, 1, 0, lc}; Point(4) = {0, 1, 0, lc};
Point(5) = {2, 0, 0, lc}; Point(6) = {2, 1, 0, lc};
Line(1) = {1, 2}; Line(2) = {2, 3}; Line(3) = {3, 4}; Line(4) = {4, 1};
Line(5) = {2, 5}; Line(6) = {5, 6}; Line(7) = {6, 3};
Curve Loop(1) = {1, 2, 3, 4}; Plane Surface(1) = {1};
Curve Loop(2) = {5, 6, 7, -2}; Plane Surface(2) = {2};
a[] = Extrude {0, 0, 1} { Surface{1}; };
b[] = Extrude {0, 0, 1} { Surface{2}; };
Physical Volume("left") = {a[1]};
Physical Volume("right half", 7) = {b[1]};
Physical Surface("clamped") = {a[5]};
Physical Surface("bottom") = {1, 2};
Physical Curve("rim") = {1};
Physical Point("tip") = {6};
