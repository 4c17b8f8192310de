// A room of 6 m by 4.6 m by 2.8 m with a ceiling light, a table and a wardrobe: all that a camera sees that turns at one
// point, longitude from left to right and latitude from top to bottom, the middle looking along +z.
//     povray +Iroom.pov +Oroom.png +W720 +H360 +A0.1 +Q9 -D
#version 3.7;
global_settings {
  assumed_gamma 1.0
  radiosity { pretrace_start 0.04 pretrace_end 0.01 count 120 nearest_count 8 error_bound 0.5 recursion_limit 2 brightness 0.8 }
}
camera { spherical angle 360 180 location <0.3, 1.5, -0.2> look_at <0.3, 1.5, 1> }
light_source { <0, 2.7, 0> color rgb 0.9 area_light <1.2, 0, 0>, <0, 0, 0.6>, 3, 2 adaptive 1 fade_distance 3 fade_power 1 }
#declare Wall = finish { ambient 0 emission 0.08 diffuse 0.7 }
plane { y, 0 texture { pigment { checker color rgb <0.55, 0.35, 0.2> color rgb <0.7, 0.5, 0.3> scale 0.6 } finish { Wall } } }
plane { -y, -2.8 texture { pigment { color rgb 0.9 } finish { Wall } } }
plane { x, -3 texture { pigment { color rgb <0.8, 0.3, 0.25> } finish { Wall } } }
plane { -x, -3 texture { pigment { color rgb <0.3, 0.45, 0.8> } finish { Wall } } }
plane { z, -2.3 texture { pigment { gradient x color_map { [0.5 color rgb <0.85, 0.85, 0.6>] [0.5 color rgb <0.7, 0.75, 0.5>] } scale 0.8 } finish { Wall } } }
plane { -z, -2.3 texture { pigment { color rgb <0.6, 0.8, 0.6> } finish { Wall } } }
// The lamp itself.
box { <-0.6, 2.72, -0.3>, <0.6, 2.79, 0.3> texture { pigment { color rgb 1 } finish { emission 1 } } no_shadow }
// A table with four legs.
union {
  box { <-0.7, 0.72, -0.45>, <0.7, 0.78, 0.45> }
  box { <-0.65, 0, -0.4>, <-0.57, 0.72, -0.32> }
  box { <0.57, 0, -0.4>, <0.65, 0.72, -0.32> }
  box { <-0.65, 0, 0.32>, <-0.57, 0.72, 0.4> }
  box { <0.57, 0, 0.32>, <0.65, 0.72, 0.4> }
  texture { pigment { color rgb <0.35, 0.2, 0.1> } finish { ambient 0 emission 0.03 diffuse 0.7 } }
  rotate 20 * y
  translate <1.6, 0, 1.3>
}
// A wardrobe with two doors.
union {
  box { <0, 0, 0>, <1.4, 2.1, 0.6> texture { pigment { color rgb <0.9, 0.8, 0.6> } finish { Wall } } }
  box { <0.68, 0.05, -0.01>, <0.72, 2.05, 0> texture { pigment { color rgb 0.1 } } }
  sphere { <0.6, 1.1, -0.03>, 0.04 texture { pigment { color rgb 0.05 } } }
  sphere { <0.8, 1.1, -0.03>, 0.04 texture { pigment { color rgb 0.05 } } }
  translate <-2.6, 0, 1.65>
}
